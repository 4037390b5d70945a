"""Components go to the page; the orchestrator reads compact references to them, never what is in them."""

from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from kit.compose.deck import load_deck
from kit.core.outcome import BESIDE, REFERENCES, Answer, ComponentPayload, tell
from kit.models.scripted import Line, ScriptedModel
from kit.settings import HOME, Settings
from kit.wire import open_kit
from tests.kits import asks

OTHERS = dict.fromkeys(
    set(load_deck(HOME / "cards" / "consumer").cards) - {"orchestrator", "shop"}, "offline"
)


def results(messages: list[Any]) -> str:
    return "\n".join(
        str(message.content) for message in messages if isinstance(message, ToolMessage)
    )


@pytest.mark.req("PC2-S5.3b")
async def test_a_shipped_card_renders_what_it_speaks_of_and_the_orchestrator_reads_references_alone():
    title = "200 points on Ember Hill Ground Coffee 12 oz"
    shop = ScriptedModel(
        Line(calls=[("search_offers", {"query": "coffee"})]),
        Line(calls=[("render_offers", {"component_ids": [title, "of-0002"]})]),
        Line("Two coffee offers lead today."),
    )
    lead = ScriptedModel(
        asks("shop", query="find coffee deals"), Line("Two coffee offers lead today.")
    )
    models: dict[str, Any] = {"orchestrator": lead, "shop": shop, **OTHERS}
    async with open_kit(Settings(store=":memory:", pace=0.0), models=models) as kit:
        reply = await kit.ask("find coffee deals", kit.session("s"))
        (answer,) = reply.outcomes
        assert isinstance(answer, Answer)
        assert [c.payload["id"] for c in answer.components] == ["of-0004", "of-0002"], (
            "what it chose, in its order"
        )
        told = results(lead.seen[1])
        references = "; ".join(component.reference for component in answer.components)
        assert references.startswith(f"offer of-0004: {title}; offer of-0002: ")
        assert told == f"Two coffee offers lead today.\n\n({BESIDE} {references})"
        assert reply.text == "Two coffee offers lead today."


def test_a_reference_is_one_short_line_and_many_are_counted():
    parts = tuple(
        ComponentPayload(
            type="offer",
            payload={"id": f"o{n}", "title": f"Tea\n({n})" + "x" * 200, "secret": "s3cret"},
        )
        for n in range(REFERENCES + 4)
    )
    answer = Answer(
        call_id="c",
        agent="shop",
        text="Tea.",
        components=parts,
        caveat="Some sources did not answer.",
    )
    told = tell(answer, with_components=True)
    assert tell(answer) == "Tea.\n\n(Note: Some sources did not answer.)" and told.endswith(
        "(Note: Some sources did not answer.)"
    )
    assert "s3cret" not in told and "4 more)" in told and told.count("offer o") == REFERENCES
    assert all(len(part.reference) <= 80 and "\n" not in part.reference for part in parts)
