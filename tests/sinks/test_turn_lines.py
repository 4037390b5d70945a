"""A line of JSON for each turn, with figures and without a word that anybody said."""

import json
from pathlib import Path

import pytest

from kit.settings import Settings
from kit.wire import open_kit

MIXED = "How many points do I have, and find coffee deals"


@pytest.mark.req("K-34")
async def test_a_turn_leaves_one_line_without_its_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(
        store=str(tmp_path / "kit.db"), model="offline", pace=0, tenant="acme", turn_lines=True
    )
    async with open_kit(settings, faults=True) as kit:
        reply = await kit.ask(MIXED, kit.session("s1"), faults=["rewards=raise"])
    (text,) = capsys.readouterr().out.splitlines()
    line = json.loads(text)
    assert line["turn"] == reply.turn_id and line["session"] == "s1"
    assert (line["tenant"], line["user"]) == ("acme", "u-001")
    assert (line["status"], line["failed"]) == ("ok", ["rewards"])
    assert line["seconds"] is not None and line["input_tokens"] > 0 and line["model"] == "offline"
    assert not any(word in text for word in ("points", "coffee", reply.text[:20]))
