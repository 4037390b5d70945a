"""The client of a skill service: what a key opens, what a step may call, what a fault is, and that
no key is ever read."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from kit.core.errors import BindError
from kit.settings import HOME
from kit.tools.mcp.server import McpServer
from kit.tools.mcp.session import McpSession
from kit.tools.skill import (
    KEY,
    Fence,
    SkillFault,
    SkillManifest,
    SkillReason,
    SkillResult,
    Skills,
    canonical_text,
)
from kit.tools.skills import SkillClient, chosen_service, skill_client
from kit.worlds.outlets.access import Scope
from kit.worlds.outlets.call_log import CallLog
from kit.worlds.outlets.server import skill_app
from kit.worlds.outlets.skill_service import Fault, SkillFailed, SkillService
from kit.worlds.service.serve import serving
from tests.cli.test_cli import run
from tests.step_kits import in_memory

KEYS = {"acme": "acme-key-0123456789", "globex": "globex-key-0123456789"}
OURS, THEIRS = "ou-0001", "ou-3001"


@asynccontextmanager
async def over_http(
    key: str,
    service: SkillService | None = None,
    *,
    around: Callable[[Any], Any] = lambda app: app,
    **server: Any,
) -> AsyncGenerator[SkillClient]:
    """A client of acme's service, called over a real socket with a key. `around` stands before the service."""
    async with serving(around(skill_app(service or SkillService(), KEYS))) as url:
        server = {"url": f"{url}/api/acme", "headers": {KEY: "$SKILL_SERVICE_KEY"}, **server}
        client = skill_client(McpServer(**server), Path(), {"SKILL_SERVICE_KEY": key})
        yield client
        await client.aclose()


FENCE = Fence(plan_id="plan_x", number=1)


async def call(
    client: Skills, skill: str, key: str = "k-1", **arguments: Any
) -> SkillResult | SkillFault:
    async with client.step([skill], FENCE) as step:
        return await step.call(skill, arguments, key)


async def result(client: Skills, skill: str, key: str = "k-1", **arguments: Any) -> SkillResult:
    outcome = await call(client, skill, key, **arguments)
    assert isinstance(outcome, SkillResult), outcome
    return outcome


async def fault(client: Skills, skill: str, key: str = "k-1", **arguments: Any) -> SkillFault:
    outcome = await call(client, skill, key, **arguments)
    assert isinstance(outcome, SkillFault), outcome
    return outcome


# What a key opens


@pytest.mark.realtime
@pytest.mark.req("AS-10")
async def test_what_a_key_does_not_open_is_as_if_it_were_not_there():
    """Globex has one skill more. With acme's key nothing tells it from a skill that nobody has."""
    hidden, unheard = "outlet_inspections", "outlet_astrologies"
    async with serving(skill_app(SkillService(), KEYS)) as url:
        for tenant, sees in (("acme", False), ("globex", True)):
            service = McpServer(url=f"{url}/api/{tenant}/mcp")
            client = skill_client(service, Path(), {}, key=KEYS[tenant])
            skills = await client.find("what will the inspector visit next")
            assert not isinstance(skills, SkillFault) and skills
            assert (hidden in str(skills)) is sees
            answers = [await client.load(hidden), await call(client, hidden)]
            if sees:
                assert isinstance(answers[0], SkillManifest) and isinstance(answers[1], SkillResult)
            else:
                others = [await client.load(unheard), await call(client, unheard)]
                assert [_told(answer, hidden) for answer in answers] == [
                    _told(answer, unheard) for answer in others
                ]
                assert all(
                    isinstance(answer, SkillFault) and answer.reason == "unknown_skill"
                    for answer in answers
                )
                assert (await result(client, "outlet_details", outlet_id=THEIRS)).content == {
                    "found": False,
                    "outlet": None,
                }
            await client.aclose()


def _told(outcome: object, name: str) -> str:
    assert isinstance(outcome, SkillFault)
    return (
        outcome.replace(duration_ms=0, input_size_bytes=0).model_dump_json().replace(name, "NAME")
    )


@pytest.mark.realtime
@pytest.mark.req("AS-10", "AS-18")
async def test_a_planner_finds_and_loads_and_a_step_calls_over_http():
    async with over_http(KEYS["acme"]) as client:
        skills = await client.find("price of an item on the menu")
        assert not isinstance(skills, SkillFault) and skills[0].skill_name == "outlet_menu"
        manifest = await client.load("outlet_menu")
        assert (
            isinstance(manifest, SkillManifest)
            and manifest.id == "outlet_menu"
            and manifest.repeatable
        )
        assert "items" in manifest.output_schema["properties"]
        menu = await result(client, "outlet_menu", outlet_id=OURS)
        assert (
            menu.content
            and menu.text == canonical_text(menu.content)
            and json.loads(menu.text) == menu.content
        )
        assert menu.size_bytes == len(
            menu.text.encode()
        ) > 1_000_000 and menu.input_size_bytes == len('{"outlet_id":"ou-0001"}')


@asynccontextmanager
async def _closing(client: SkillClient) -> AsyncGenerator[SkillClient]:
    yield client
    await client.aclose()


# What a step may call


async def test_a_skill_that_the_step_does_not_name_never_leaves_the_process():
    async with (
        in_memory(SkillService(), step_key=_no_key) as client,
        client.step(["outlet_list"], FENCE) as step,
    ):
        named, other = (
            await step.call("outlet_list", {}, "k"),
            await step.call("outlet_menu", {"outlet_id": OURS}, "k"),
        )
    assert (
        isinstance(named, SkillFault) and named.reason == "gone"
    )  # it would have gone to a service that is not there
    assert isinstance(other, SkillFault) and other.reason == "skill_not_allowed"


async def _no_key(names: Sequence[str]) -> SkillFault:
    return SkillFault(skill="steps", reason="gone")


@pytest.mark.realtime
async def test_a_key_of_a_step_that_cannot_be_read_is_not_quoted():
    """pydantic's words for what does not fit hold what was sent: here the token."""
    token = "step-token-0123456789"

    def around(app: Any) -> Any:
        async def garble(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and not scope["path"].endswith("/mcp"):
                app_of_reply = JSONResponse({"token": [token]}, 201)
                return await app_of_reply(scope, receive, send)
            await app(scope, receive, send)

        return garble

    async with over_http(KEYS["acme"], around=around) as client:
        refused = await fault(client, "outlet_list")
    assert refused.reason == "schema_mismatch" and token not in repr(refused)


class Asked(SkillService):
    """A service that keeps which skills each caller was narrowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed: list[frozenset[str] | None] = []

    def call(
        self, scope: Scope, name: str, arguments: Mapping[str, Any], key: str | None = None
    ) -> Any:
        self.allowed.append(scope.allowed)
        return super().call(scope, name, arguments, key)


async def test_a_step_tells_a_service_without_tokens_which_skills_it_names():
    service = Asked()
    async with (
        in_memory(service) as client,
        client.step(["outlet_menu", "outlet_list"], FENCE) as step,
    ):
        assert isinstance(await step.call("outlet_list", {}, "k-1"), SkillResult)
    assert service.allowed == [{"outlet_menu", "outlet_list"}]


# What goes wrong


@pytest.mark.parametrize(
    ("script", "reason", "uncertain"),
    [("fails", "failed", False), ("hangs", "timeout", True), ("loses", "timeout", True)],
)
async def test_each_fault_of_a_skill_is_a_value_and_the_next_call_is_none(
    script: Fault, reason: SkillReason, uncertain: bool
):
    log = CallLog()
    async with in_memory(SkillService(log=log, faults={"outlet_list": [script]})) as client:
        lost = await fault(client, "outlet_list")
        assert (lost.reason, lost.uncertain) == (
            reason,
            uncertain,
        ) and lost.duration_ms >= 30_000 * (reason == "timeout")
        assert len(log.calls()) == (script == "loses")
        assert (await result(client, "outlet_list")).content


async def test_a_call_that_could_not_be_sent_has_certainly_not_run():
    """Nobody answers when it connects; or whoever connects, and then not the call."""
    async with in_memory(SkillService(faults={"outlet_call": ["hangs"]})) as client:
        lost = await fault(client, "outlet_call", outlet_id=OURS, message="we are late")
    assert (lost.reason, lost.uncertain) == ("timeout", True)
    session = McpSession(
        "skills",
        McpServer(url="http://skills.example/mcp", connect_ms=60_000),
        lambda wire: _Silent(),
    )
    client = SkillClient(lambda key: session)
    assert not (await fault(client, "outlet_call", outlet_id=OURS, message="we are late")).uncertain
    await client.aclose()


class _Silent:
    """A transport that never opens."""

    async def __aenter__(self) -> Any:
        await asyncio.sleep(600)

    async def __aexit__(self, *_: object) -> None:
        return None


async def test_arguments_that_do_not_fit_run_nothing():
    log = CallLog()
    async with in_memory(SkillService(log=log)) as client:
        assert (await fault(client, "outlet_list", limit=0)).detail.startswith("$.limit")
        assert (
            await fault(client, "outlet_list", city="half of a pair: \ud83d")
        ).reason == "bad_arguments"
        assert (await fault(client, "outlet_astrologies")).reason == "unknown_skill"
    assert log.calls() == []


@pytest.mark.realtime
async def test_a_wrong_key_a_dead_service_and_too_long_a_result_are_told_apart():
    async with over_http("no-such-key-0123456789") as client:
        for outcome in (
            await client.find("menu"),
            await client.load("outlet_menu"),
            await call(client, "outlet_menu"),
        ):
            assert isinstance(outcome, SkillFault) and outcome.reason == "unauthorized"
    async with over_http(KEYS["acme"], most_bytes=200_000) as client:
        assert (await fault(client, "outlet_menu", outlet_id=OURS)).reason == "oversized"
        assert (await result(client, "outlet_menu", outlet_id=OURS, query="soup")).content
    for outcome in (
        await client.find("menu"),
        await call(client, "outlet_menu"),
    ):  # the service is gone by now
        assert (
            isinstance(outcome, SkillFault) and outcome.reason == "gone" and not outcome.uncertain
        )


# Acts, and the keys that make them once


@pytest.mark.req("AS-14")
async def test_an_act_for_a_plan_that_somebody_else_has_taken_since_is_refused_by_the_service():
    """A turn that was asleep for an hour wakes up, and its call comes after those of the next one."""
    log = CallLog()
    act = {"outlet_id": OURS, "text": "call back"}
    async with in_memory(SkillService(log=log)) as client:
        for number in (1, 2):
            fence = Fence(plan_id="plan_x", number=number)
            async with client.step(["outlet_note"], fence) as step:
                assert isinstance(await step.call("outlet_note", act, f"k-{number}"), SkillResult)
        async with client.step(["outlet_note", "outlet_list"], FENCE) as late:
            refused = await late.call("outlet_note", act, "k-3")
            assert isinstance(refused, SkillFault) and refused.reason == "superseded"
            assert isinstance(await late.call("outlet_list", {}, "k-4"), SkillResult), "a look-up"
        async with client.step(["outlet_note"], Fence(plan_id="plan_y", number=1)) as other:
            assert isinstance(await other.call("outlet_note", act, "k-5"), SkillResult)
    assert [call.key for call in log.calls() if call.skill == "outlet_note"] == [
        "k-1",
        "k-2",
        "k-5",
    ]


async def test_a_call_with_the_key_of_an_earlier_one_gets_its_result_and_runs_no_second_time():
    log = CallLog()
    async with in_memory(SkillService(log=log, faults={"outlet_note": ["loses"]})) as client:
        assert (await fault(client, "outlet_note", outlet_id=OURS, text="call back")).uncertain
        again = [
            await result(client, "outlet_note", outlet_id=OURS, text="call back") for _ in range(2)
        ]
        assert [note.content for note in again] == [
            {"found": True, "outlet_id": OURS, "notes": 1}
        ] * 2
        assert len(log.calls()) == 1
        assert (
            await fault(client, "outlet_note", outlet_id=OURS, text="another")
        ).reason == "key_reused"
        assert (
            await result(client, "outlet_note", "k-2", outlet_id=OURS, text="call back")
        ).content != again[0].content
    async with in_memory(SkillService(log=log), "globex") as client:
        theirs = await result(client, "outlet_note", outlet_id=THEIRS, text="theirs")
        assert theirs.content == {
            "found": True,
            "outlet_id": THEIRS,
            "notes": 1,
        }  # the same key of another tenant


# What nobody reads


class Echo(SkillService):
    """A service that gives back whatever it was told, the key included."""

    def __init__(self, secret: str):
        super().__init__()
        self._secret = secret

    def call(
        self, scope: Scope, name: str, arguments: Mapping[str, Any], key: str | None = None
    ) -> Any:
        answer = super().call(scope, name, arguments, key)
        if name == "outlet_details":
            raise SkillFailed(f"the key is {self._secret}")
        return (
            {**answer, "outlet": f"of {self._secret}"}
            if name == "outlet_menu" and isinstance(answer, dict)
            else answer
        )


@pytest.mark.realtime
@pytest.mark.req("AS-10")
async def test_the_key_is_in_no_result_fault_repr_or_log(caplog: pytest.LogCaptureFixture):
    secret = KEYS["acme"]
    caplog.set_level(logging.DEBUG)
    seen: list[object] = []
    async with over_http(secret, Echo(secret)) as client:
        seen += [client, await client.find("menu"), await client.load("outlet_menu")]
        seen += [await result(client, "outlet_menu", outlet_id=OURS, query="soup")]
        seen += [
            await fault(client, "outlet_details", outlet_id=OURS),
            await fault(client, "outlet_menu", outlet_id="no id"),
        ]
        async with client.step(["outlet_list"], FENCE) as step:
            seen += [
                step,
                vars(step),
                await step.call("outlet_list", {}, "k"),
                await step.call("outlet_menu", {}, "k"),
            ]
    async with over_http(f"not-{secret}") as client:
        seen += [await client.find("menu"), await call(client, "outlet_menu")]
    assert all(secret not in repr(value) for value in seen)
    assert "[secret]" in repr(seen)
    records = [
        f"{record.getMessage()} {record.args} {record.exc_text}" for record in caplog.records
    ]
    assert records and not [line for line in records if secret in line or "step-" in line]


@pytest.mark.realtime
async def test_what_is_no_key_is_left_in_a_result():
    """Of what a service is told, the names tell what is secret: a city that stands in a variable stays in the rows."""
    headers = {"X-Region": "$REGION", "X-Api-Key": "$A_KEY", "X-Other": "$OTHER_TOKEN"}
    told = {"REGION": "Rivermont", "A_KEY": KEYS["acme"], "OTHER_TOKEN": "Harbor Way"}
    async with serving(skill_app(SkillService(), KEYS)) as url:
        service = McpServer(url=f"{url}/api/acme", headers=headers)
        async with _closing(skill_client(service, Path(), told)) as client:
            rows = (await result(client, "outlet_list", city="Rivermont")).text
            street = (await result(client, "outlet_details", outlet_id="ou-0412")).text
    assert "Rivermont" in rows and "[secret]" not in rows
    assert "30 [secret]" in street and "Harbor Way" not in street


# Which service, and what the log keeps


def test_the_key_of_the_environments_service_is_named_where_it_is_not_set():
    assert chosen_service(None, None) is None
    service = chosen_service(None, "https://skills.example/api/acme")
    assert service is not None
    with pytest.raises(BindError, match="SKILL_SERVICE_KEY, which is not set"):
        skill_client(service, Path(), {})


def test_check_says_what_a_deck_calls_for_skills_and_starts_nothing():
    report = run(
        "check", str(HOME / "cards/outlets"), SKILL_SERVICE_URL="http://127.0.0.1:9/api/acme"
    )
    assert (
        "skill service calls http://127.0.0.1:9/api/acme and sends it SKILL_SERVICE_KEY"
        in report.stdout
    ), report.stderr
    wrong = run("check", str(HOME / "cards/outlets"), SKILL_SERVICE_URL="127.0.0.1")
    assert wrong.returncode == 2 and "SKILL_SERVICE_URL='127.0.0.1' cannot be used" in wrong.stderr
