"""The skill service of the outlets: what each skill promises, who may call it, and that a large menu arrives whole."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.core.errors import DataError, SettingsError
from kit.settings import HOME, Settings
from kit.tools.mcp.json_schema import schema_fault
from kit.tools.mcp.lock import tools_difference
from kit.tools.mcp.server import McpServer
from kit.tools.mcp.session import McpSession
from kit.tools.skill import FIND, KEY, LOAD
from kit.wire import open_kit
from kit.worlds.outlets.__main__ import read_keys
from kit.worlds.outlets.access import LIFETIME, Access, Scope
from kit.worlds.outlets.acts import ACTS
from kit.worlds.outlets.lookups import LOOKUPS
from kit.worlds.outlets.manifest import read_manifests
from kit.worlds.outlets.server import skill_app, skill_server
from kit.worlds.outlets.skill_service import SkillService
from kit.worlds.service.serve import serving

SERVICE = SkillService()
MANIFESTS = read_manifests()
ACME, GLOBEX = Scope("acme"), Scope("globex")
KEYS = {"acme": "acme-key-0123456789", "globex": "globex-key-0123456789"}
OURS, THEIRS, NOBODYS = "ou-0001", "ou-3001", "ou-9999"
SERVER = McpServer(url="http://skills.example/mcp")


def result(scope: Scope, name: str, **arguments: Any) -> dict[str, Any]:
    answer = SERVICE.call(scope, name, arguments)
    assert isinstance(answer, dict), answer
    return answer


# Each skill keeps its word


def test_every_skill_has_a_manifest_and_a_function():
    assert set(MANIFESTS) == set(LOOKUPS) | set(ACTS)
    assert {skill.id for skill in MANIFESTS.values() if skill.idempotent} == set(LOOKUPS)
    for skill in MANIFESTS.values():
        assert (
            schema_fault(skill.input_schema) is None and schema_fault(skill.output_schema) is None
        )
        assert skill.endpoint == f"skills/{skill.id}"


def test_a_planner_finds_the_skill_for_a_task_first_and_loads_all_of_it():
    for query, skill in {
        "rank outlets by revenue": "outlet_analytics",
        "price of an item on the menu": "outlet_menu",
        "how many seats": "outlet_details",
    }.items():
        assert result(ACME, FIND, query=query)["skills"][0]["skill_name"] == skill
    long = "We open in spring and " * 200 + "want the price of an item on the menu"
    assert result(ACME, FIND, query=long)["skills"][0]["skill_name"] == "outlet_menu"
    loaded = result(ACME, LOAD, skill_name="outlet_menu")
    manifest = MANIFESTS["outlet_menu"]
    assert loaded["output_schema"] == manifest.output_schema and loaded["execution_mode"] == "sync"
    assert (
        loaded["limitations"] == list(manifest.limitations)
        and loaded["endpoint"] == "skills/outlet_menu"
    )


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("id: outlet_list", "id: other_list", "rename"),
        ("execution_mode: sync", "execution_mode: later", "is no skill"),
    ],
)
def test_a_manifest_that_is_none_is_named(tmp_path: Path, old: str, new: str, fault: str):
    text = (HOME / "cards/outlets/skills/outlet_list.yaml").read_text()
    (tmp_path / "outlet_list.yaml").write_text(text.replace(old, new))
    with pytest.raises(DataError, match=rf"outlet_list.yaml.*{fault}"):
        read_manifests(tmp_path)


# Whose it is


def test_a_token_ends_and_opens_nothing_at_another_tenants_url():
    seconds = [0.0]
    access = Access(KEYS, clock=lambda: seconds[0])
    token = access.narrow(ACME, ["outlet_list"])
    assert (
        access.scope("acme", token) == Scope("acme", frozenset(["outlet_list"]))
        and access.scope("globex", token) is None
    )
    seconds[0] = LIFETIME
    assert access.scope("acme", token) is None and access.scope("acme", KEYS["acme"]) == ACME


# Over HTTP, with keys


@asynccontextmanager
async def client(key: str | None) -> AsyncGenerator[httpx.AsyncClient]:
    async with serving(skill_app(SERVICE, KEYS)) as url, httpx.AsyncClient(base_url=url) as http:
        http.headers.update({KEY: key} if key else {})
        yield http


@pytest.mark.realtime
async def test_a_wrong_key_is_a_401_at_every_address():
    async with client(None) as http:
        for key in (None, "", "acme-key", KEYS["globex"], "step-forged"):
            headers = {} if key is None else {KEY: key}
            for path in ("mcp", "skills/outlet_list", "steps", "nothing"):
                reply = await http.post(f"/api/acme/{path}", json={}, headers=headers)
                assert reply.status_code == 401 and "outlet" not in reply.text, (key, path)


@pytest.mark.realtime
async def test_a_steps_token_calls_the_skills_it_names_and_no_others():
    async with client(KEYS["acme"]) as http:
        reply = await http.post("/api/acme/steps", json={"allowed_skills": ["outlet_list"]})
        assert reply.status_code == 201
        assert (
            await http.post("/api/acme/steps", json={"allowed_skills": ["outlet_inspections"]})
        ).status_code == 400
        assert (await http.post("/api/acme/steps", json={})).status_code == 400
        token = {KEY: reply.json()["token"]}
        assert (await http.post("/api/acme/skills/outlet_list", json={}, headers=token)).json()[
            "total"
        ] == 3_000
        other = await http.post(
            "/api/acme/skills/outlet_menu", json={"outlet_id": OURS}, headers=token
        )
        assert other.status_code == 403 and other.json()["error"]["type"] == "skill_not_allowed"
        assert (
            await http.post(
                "/api/acme/steps", json={"allowed_skills": ["outlet_menu"]}, headers=token
            )
        ).status_code == 403
        assert (
            await http.post("/api/globex/skills/outlet_list", json={}, headers=token)
        ).status_code == 401


def test_keys_that_are_too_short_or_nobodys_are_refused_before_anything_is_served():
    assert read_keys("acme=acme-key-0123456789, globex=globex-key-0123456789") == KEYS
    for text in ("", "acme=short", "initech=initech-key-0123456789", "acme"):
        with pytest.raises(SettingsError, match="SKILL_SERVICE_KEYS=acme=KEY"):
            read_keys(text)


# As a deck


async def test_what_the_deck_accepted_is_what_the_service_offers():
    from kit.tools.mcp.lock import read_lock

    session = McpSession("skills", SERVER, lambda wire: skill_server(SERVICE, lambda context: ACME))
    offered = await session.open()
    await session.aclose()
    assert tools_difference(read_lock(HOME / "cards/outlets")["skills"].tools, offered) == ""


def test_a_menu_is_narrowed_by_words_of_its_items():
    menu = result(ACME, "outlet_menu", outlet_id=OURS)["items"]
    found = result(ACME, "outlet_menu", outlet_id=OURS, query="vegetarian dishes on the menu")
    assert found["items"] == [item for item in menu if item["vegetarian"]]
    assert result(ACME, "outlet_menu", outlet_id=OURS, query="sushi")["items"] == []


@pytest.mark.realtime
async def test_the_chat_about_outlets_answers_for_each_id_and_refuses_what_is_for_nobody():
    deck = HOME / "cards" / "outlets"
    async with open_kit(Settings(deck=deck, store=":memory:", pace=0.0, model="offline")) as kit:
        seats = "how many seats does ou-0003 have, what's on its menu"
        both = await kit.ask(seats, kit.session("both"))
        other = await kit.ask("and ou-0002?", kit.session("both"))
        joke = await kit.ask("do you know a good joke", kit.session("joke"))
        beside = "what's the capital of France, and list the outlets in Oakfield"
        capital = await kit.ask(beside, kit.session("capital"))
        most = await kit.ask("which outlets in Oakfield earned the most", kit.session("most"))
    assert "Juniper Kettle (ou-0003)" in both.text and "40 items in all" in both.text
    assert "Clover Table: 19 items in all" in other.text
    assert joke.routing.invoked == ()
    assert "531 outlets in all" in capital.text
    assert capital.text.endswith("I can't help with “what's the capital of France”.")
    assert "ranked by score: what they took in a seat" in most.text, (
        "the first is not who took most"
    )


@pytest.mark.realtime
async def test_the_chat_about_outlets_tells_of_what_was_asked_and_of_nothing_wider():
    said_of_message = {
        "how many outlets are there in all": "3,000 outlets in all",
        "show me the bakeries in Rivermont": "100 outlets in all",
        "rank the outlets of Oakfield by revenue": "444 outlets",
        "list outlets opened after 2020": "not narrowed to “after 2020”",
        "which outlets are in Atlantis": "No outlet fits what was asked for.",
        "compare the figures of ou-0001 and ou-0412": "without figures: ou-0001, ou-0412.",
        "pause ou-0003": "I can only look things up here, and have done nothing else.",
    }
    deck = HOME / "cards" / "outlets"
    async with open_kit(Settings(deck=deck, store=":memory:", pace=0.0, model="offline")) as kit:
        for message, words in said_of_message.items():
            reply = await kit.ask(message, kit.session(message))
            assert words in reply.text, message
