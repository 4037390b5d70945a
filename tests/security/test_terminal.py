"""What a tool, a model or a peer says cannot act on the terminal that an answer is read in."""

import io

import pytest
from langchain_core.tools import tool

from kit.cli.story import Story
from kit.core.card import AgentCard
from kit.core.language.controls import without_controls
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.runtime.turn import run_turn
from tests.kits import ALICE, answering, asks, repeats, small_kit, stitched

CLEAR, CLIPBOARD, TITLE = "\x1b[2J\x1b[H", "\x1b]52;c;cm0gLXJmIC8=\x07", "\x1b]0;owned\x1b\\"
HOSTILE = f"There are {CLEAR}4 packs{CLIPBOARD} of tea\n\ton {TITLE}shelf 7\x9b31m.\x08\x07\r"
PLAIN = "There are 4 packs of tea\n\ton shelf 7."


def terminal(reply: Reply) -> str:
    """What the terminal gets of a turn."""
    out = io.StringIO()
    story = Story(out, "offline")
    for event in reply.events:
        story.tell(event)
    return out.getvalue()


def controls(text: str) -> set[str]:
    return {
        sign for sign in text if (sign < " " and sign not in "\n\t") or "\x7f" <= sign <= "\x9f"
    }


def test_a_text_keeps_its_words_and_its_lines():
    assert without_controls(HOSTILE) == PLAIN
    assert (
        without_controls("ñandú «ça va» 日本 \U0001f600\n\t") == "ñandú «ça va» 日本 \U0001f600\n\t"
    )
    assert not controls(without_controls("\x1b]" * 50_000 + "\x1b[" * 50_000)), "at once, too"


@pytest.mark.parametrize("where", ["tool", "model", "lead"])
async def test_nothing_that_is_said_acts_on_the_terminal(where: str):
    @tool
    def stock() -> str:
        """The stock."""
        return HOSTILE

    desk = ScriptedModel(Line(calls=[("stock", {})]), repeats)
    models = {"desk": desk if where == "tool" else answering(HOSTILE)}
    lead = [asks("desk"), stitched]
    if where == "lead":
        lead = [asks("desk", text=HOSTILE), Line(HOSTILE, pieces=list(HOSTILE))]
    card = AgentCard(id="desk", description="Knows the stock.", model="offline", tools=("stock",))
    kit = small_kit(lead, models, {"stock": stock}, [card])
    reply = await run_turn("how many packs of tea", ALICE, kit)
    assert "4 packs" in reply.text and not controls(reply.text)
    assert not controls(terminal(reply))
    if where != "lead":
        (outcome,) = reply.outcomes
        assert outcome.kind == "answer" and outcome.text == PLAIN
    if where == "tool":
        assert not controls("".join(str(message.content) for message in desk.seen[-1]))
