"""Turns whose calls an earlier version stored as text are read, and played, like those of today."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from kit import Settings, open_kit
from kit.core.bodies.call import ModelEnded, ModelStarted, ToolEnded
from kit.core.context import OPERATOR
from kit.core.event import Event
from kit.stores.model_request import model_request
from kit.stores.sqlite import open_for_reading

MIXED = "What are my points, any burger deals near me, and where can I buy a kettle?"


def earlier(event: dict[str, Any]) -> dict[str, Any]:
    """An event as an earlier version stored it."""
    body = event["body"]
    for name in ("failure", "was_called"):
        body.pop(name, None)
    if body["kind"] == "model_ended":
        body["calls"] = [f"{call['name']}({call['args']})" for call in body["calls"]]
    if body["kind"] == "model_started":
        lines: list[str] = []
        for message in body["input"]:
            line = f"{message['role']}: {message['text']}"
            for call in message["calls"]:
                line += f"\n→ {call['name']}({call['args']})"
            lines.append(line)
        body["input"] = lines
    return event


@pytest.mark.req("K-32")
@pytest.mark.parametrize("pattern", ["mediated", "swarm"])
async def test_a_turn_that_an_earlier_version_stored_is_read_and_forked(
    tmp_path: Path, pattern: str
) -> None:
    """One part of it fails on purpose, so that the words of an error are read back too."""
    file = tmp_path / "kit.db"
    settings = Settings.read({}).with_(model="offline", store=str(file), pace=0.0)
    async with open_kit(settings, faults=True) as kit:
        reply = await kit.ask(
            MIXED, kit.session("talk"), pattern, faults=["restaurants=error_envelope"]
        )
        stored = kit.store.events(reply.turn_id, OPERATOR)
        assert any(isinstance(event.body, ToolEnded) and event.body.failure for event in stored)
        last = [event for event in stored if isinstance(event.body, ModelStarted)][-1]
    with closing(open_for_reading(file)) as reader:
        ((log,),) = reader.execute("SELECT sqlar_uncompress(log, size) FROM logs").fetchall()
    db = sqlite3.connect(file)
    old = [earlier(event) for event in orjson.loads(log)]
    db.execute("UPDATE logs SET size = 0, log = ?", (orjson.dumps(old).decode(),))
    db.commit()
    db.close()
    async with open_kit(settings, faults=True) as kit:
        turn = kit.store.turn(reply.turn_id, OPERATOR)
        events = kit.store.events(reply.turn_id, OPERATOR)
        assert turn is not None and [plain(event) for event in events] == [
            plain(event) for event in stored
        ]
        request = model_request(kit.store, turn, last.span_id)
        assert request == model_request(kit.store, turn, last.span_id, stored)
        assert request is not None and any(message.calls for message in request.messages)
        fork = await kit.fork(reply.turn_id, last.span_id)
        assert (fork.status, fork.text) == ("ok", reply.text)


def plain(event: Event) -> Any:
    """An event, but for the class of an exception, which no earlier version stored for a tool."""
    body = event.body
    if isinstance(body, ModelEnded | ToolEnded) and body.failure is not None:
        body = body.replace(failure=body.failure.kind)
    return event.replace(body=body)
