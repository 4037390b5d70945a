"""A key stays where it was set: no event, row, span, recording or repr holds it, whoever repeats it."""

import json
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from kit.core.context import OPERATOR, Principal, Session
from kit.core.errors import BindError
from kit.core.model import ModelSpec
from kit.models.openai import chat_model
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.recording.cassette import Cassette
from kit.runtime.turn import run_turn
from kit.settings import HOME, Settings
from kit.sinks.opentelemetry import OtelSink
from kit.sinks.recorder import Recorder
from kit.tools.mcp.server import McpServer
from kit.tools.mcp.tools import address
from kit.wire import open_kit
from tests.kits import ALICE, answering, asks, content_of, logged, small_kit, stitched
from tests.loopback_openai import Refuse, loopback

KEY = "hush-0123456789abcdef"
WHO = Principal(tenant_id="acme", user_id="u-001")


def settings(tmp_path: Path, **more: object) -> Settings:
    return Settings(
        store=str(tmp_path / "kit.db"),
        openai_api_key=KEY,
        pace=0.0,
        variables={"SHOP_TOKEN": KEY + "-2"},
        **more,  # type: ignore
    )


@pytest.mark.req("S-3")
@pytest.mark.realtime
@pytest.mark.parametrize("status", [401, 500])
async def test_an_endpoint_that_echoes_the_key_puts_it_nowhere(tmp_path: Path, status: int):
    exporter = InMemorySpanExporter()
    with loopback() as server:
        server.plays(
            *[Refuse(status, f"Incorrect API key provided: {KEY}. Authorization: Bearer {KEY}")] * 4
        )
        spec = ModelSpec(key="stub", provider="openai", fallback=None)
        model = chat_model(spec, api_key=KEY, base_url=server.url)
        kit = small_kit(model, {"shop": answering("Beans.")})
        sink = OtelSink(exporter)
        kit.recorder = Recorder((sink,))
        reply = await run_turn("hi", ALICE, kit)
        sink.close()
    events = "".join(
        event.model_dump_json()
        for event in [*reply.events, *kit.store.events(reply.turn_id, OPERATOR)]
    )
    spans = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert reply.status == "failed" and str(status) in events
    assert KEY not in events and KEY not in spans and spans
    assert "Incorrect API key" in events and "Incorrect API key" not in spans, (
        "words of others stay out of a shared collector"
    )


SPEAKERS = ("lead", "agent", "argument", "failure", "user")


@pytest.mark.req("S-3")
@pytest.mark.parametrize("by", SPEAKERS)
async def test_a_key_that_somebody_says_is_in_no_event_row_recording_or_reply(
    tmp_path: Path, by: str
):
    """Models say it in pieces; the user's part with it is left out, which a note keeps."""
    words = f"The key {KEY} works."
    pieces = tuple(words[at : at + 3] for at in range(0, len(words), 3))
    message = "find coffee deals"
    if by == "user":
        message += f", and is my refund for {KEY} through?"

    def lead(_: list[BaseMessage]) -> Line:
        if by == "lead":
            return Line(words, pieces=pieces)
        query = f"use {KEY}-2" if by == "argument" else "find coffee deals"
        return asks("shop", query=query, intents=2 if by == "user" else 1)

    def shop(_: list[BaseMessage]) -> Line:
        if by == "failure":
            raise RuntimeError(f"no such key: {KEY}")
        return Line(words, pieces=pieces)

    models = {"*": ScriptedModel(shop), "orchestrator": ScriptedModel(lead, stitched)}
    recording = tmp_path / "calls.jsonl"
    cassette = Cassette(recording, "record")
    async with open_kit(settings(tmp_path), models=models, cassette=cassette) as kit:
        reply = await kit.ask(message, Session(id="s", principal=WHO))
    said = logged(reply)
    assert "[secret]" in said and KEY not in said
    if by == "user":
        assert "“is my refund for [secret] through”" in reply.text
    assert KEY not in "".join([reply.text, repr(reply), reply._repr_html_()])
    assert KEY not in content_of(tmp_path)
    for line in recording.read_text().splitlines():
        # Whoever reads a recording reads its pieces as one text.
        assert KEY not in "".join(json.loads(line).get("pieces", ()))


@pytest.mark.req("S-3")
async def test_no_repr_shows_a_key(tmp_path: Path):
    assert KEY not in repr(settings(tmp_path, opik_api_key=KEY))
    async with open_kit(settings(tmp_path), models="offline") as kit:
        assert KEY not in repr(kit) and KEY in kit.team.secrets


@pytest.mark.req("S-3", "AS-10")
@pytest.mark.parametrize(
    ("url", "is_home"),
    [
        ("https://shop.example/v1/", True),
        ("https://shop.example/v1/mcp", True),
        ("https://shop.example/v1.evil", False),
        ("https://shop.example/v10/mcp", False),
        ("https://shop.example", False),
        ("https://shop.example.evil/v1", False),
        ("https://shop.example@evil.example/v1", False),
        ("https://shop.example:8443/v1", False),
        ("http://shop.example/v1", False),
    ],
)
def test_a_key_goes_to_its_home_and_to_no_host_that_looks_like_it(url: str, is_home: bool):
    server = McpServer(url=url, headers={"authorization": "Bearer $SHOP_API_KEY"})
    for home in ("https://shop.example/v1", "https://shop.example/v1/"):
        environment = {"SHOP_API_KEY": KEY, "SHOP_BASE_URL": home}
        if is_home:
            sent_to, headers = address("shop", server, environment)
            assert sent_to == url and headers["authorization"] == f"Bearer {KEY}"
        else:
            with pytest.raises(BindError, match=r"SHOP_API_KEY belongs to .* and is not sent to"):
                address("shop", server, environment)


@pytest.mark.req("S-3")
async def test_ids_that_hold_a_secret_value_still_find_their_rows(tmp_path: Path):
    """A server may be told the name of its organisation, which is a tenant of the kit too."""
    club = "northclub"
    who = Principal(tenant_id=club, user_id=f"{club}-ana")
    told = settings(tmp_path, deck=HOME / "cards/gifts").with_(variables={"SHOP_TOKEN": club})
    talk = Session(id=f"{club}-1", principal=who)
    async with open_kit(told, models="offline") as kit:
        greeted = await kit.ask(f"hello from {club}", talk)
        asked = await kit.ask("redeem 500 points for a gift card of Harvest Market", talk)
    async with open_kit(told, models="offline") as kit:
        reply = await kit.resume(asked.turn_id, True, who=who)
        row = kit.store.turn(greeted.turn_id, who)
        assert asked.status == "paused" and "500 points were redeemed" in reply.text
        assert row is not None and row.session_id == talk.id and row.principal == who
        assert row.message == "hello from [secret]"
        assert kit.store.forget(who)["turns"] == 2


@pytest.mark.req("S-3", "K-12")
async def test_nobody_is_asked_for_a_yes_to_words_of_which_a_secret_was_taken_out(tmp_path: Path):
    """What is stored of the call has [secret] in the place of the value, and that would be acted on."""
    told = settings(tmp_path, deck=HOME / "cards/gifts").with_(
        variables={"SHOP_TOKEN": "Harvest Market"}
    )
    async with open_kit(told, models="offline") as kit:
        talk = kit.session("s")
        reply = await kit.ask("redeem 500 points for a gift card of Harvest Market", talk)
        points = await kit.ask("how many points do I have?", talk)
    assert reply.status == "ok" and "This was not done" in reply.text
    assert "5,000 points" in points.text
