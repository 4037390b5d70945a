"""What a model says of its thinking is an event of the turn, kept in its trace, and never read as an answer."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from kit.core.bodies.speech import Reasoning, Text
from kit.core.context import OPERATOR
from kit.models.scripted import ScriptedModel
from kit.patterns.agents_as_tools import MEDIATED
from kit.patterns.direct_streaming import DIRECT
from kit.runtime.pattern import Pattern
from kit.runtime.recording.cassette import Cassette
from kit.runtime.turn import run_turn
from tests.kits import ALICE, asks, small_kit, stitched


class Thinker(ScriptedModel):
    """Streams pieces that hold reasoning in the form its provider has for it, then text."""

    pieces: list[Any]
    script: list[Any] = []

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for content, aside in self.pieces:
            yield ChatGenerationChunk(
                message=AIMessageChunk(content=content, additional_kwargs=aside)
            )


REASONING: dict[str, list[tuple[Any, dict[str, Any]]]] = {
    "beside the content": [
        ("", {"reasoning_content": "Weigh "}),
        ("", {"reasoning_content": "both."}),
        ("Two deals.", {}),
    ],
    "blocks": [
        ([{"type": "reasoning", "reasoning": "Weigh "}], {}),
        ([{"type": "reasoning", "reasoning": "both."}], {}),
        ([{"type": "text", "text": "Two deals."}], {}),
    ],
    "a summary": [
        ([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Weigh both."}]}], {}),
        ([{"type": "text", "text": "Two deals."}], {}),
    ],
    "thinking": [
        (
            [
                {"type": "thinking", "thinking": "Weigh both."},
                {"type": "text", "text": "Two deals."},
            ],
            {},
        )
    ],
}


@pytest.mark.req("SAT-10")
@pytest.mark.parametrize("pieces", REASONING.values(), ids=REASONING)
@pytest.mark.parametrize("pattern", [MEDIATED, DIRECT])
async def test_what_a_model_thinks_is_an_event_of_its_own_and_no_part_of_what_is_read(
    pattern: Pattern, pieces: list[tuple[Any, dict[str, Any]]]
):
    kit = small_kit([asks("shop"), stitched], {"shop": Thinker(pieces=pieces)})
    reply = await run_turn("coffee please", ALICE, kit, pattern)
    stored = [event.body for event in kit.store.events(reply.turn_id, OPERATOR)]
    [thought] = [body for body in stored if isinstance(body, Reasoning)]
    assert (thought.agent, thought.text) == ("shop", "Weigh both.")
    told = "".join(body.model_dump_json() for body in stored if not isinstance(body, Reasoning))
    assert "Two deals." in reply.text and "Weigh" not in told + reply.text


@pytest.mark.req("SAT-10")
async def test_reasoning_comes_before_the_words_it_led_to_and_a_replay_tells_it_again(
    tmp_path: Path,
):
    lead = [asks("shop"), stitched]
    thinker = Thinker(pieces=REASONING["beside the content"])
    for mode in ("record", "replay"):
        cassette = Cassette(tmp_path / "tape.jsonl", cast("Any", mode))
        cassette.begin("2026-11-01", None)
        kit = small_kit(
            lead if mode == "record" else [], {"shop": thinker}, cassette=cassette.track("t")
        )
        reply = await run_turn("coffee please", ALICE, kit, DIRECT)
        cassette.close()
        spoken = [e.body.text for e in reply.events if isinstance(e.body, Reasoning | Text)]
        thought = 1 if mode == "record" else 2  # played again, it follows the reply that held it
        assert spoken.pop(thought) == "Weigh both." and spoken == ["Let me look.", "Two deals."]
