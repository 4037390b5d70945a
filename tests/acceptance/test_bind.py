"""bind(): everything resolves before any model is called, or one clear fault says what does not."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool

from kit.compose.deck import Deck, DeckSettings, load_deck
from kit.core.card import AgentCard
from kit.core.errors import BindError, UnknownId
from kit.core.model import ModelSpec
from kit.core.outcome import Answer, Failure
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.settings import HOME
from kit.tools.tool import ConfiguredTool
from tests.effort import effort
from tests.kits import ALICE, answering, asks, small_deck, small_kit, stitched


@tool
def lookup(key: str) -> str:
    """Look a key up."""
    return f"value of {key}"


@tool
def explode(key: str) -> str:
    """Break."""
    raise RuntimeError("secret=/srv/x")


@pytest.mark.req("PC1-FR-2", "PC1-S9.1-3")
def test_a_tool_nobody_registered_is_named_with_its_nearest():
    card = AgentCard(id="a", description="d", model="offline", tools=("lokup",))
    with pytest.raises(UnknownId, match=r"tool of card 'a' 'lokup': did you mean 'lookup'\?"):
        bind(small_deck(["a"], [card]), "offline", {"lookup": lookup})


@pytest.mark.req("PC1-FR-2")
def test_a_model_key_nobody_registered_is_named_with_its_nearest():
    with pytest.raises(
        BindError, match=r"'orchestrator' is to speak with 'ofline'.*did you mean 'offline'\?"
    ):
        bind(small_deck(["a"]), "ofline", {})


@pytest.mark.req("PC1-NFR-6")
def test_an_orchestrator_model_without_concurrent_calls_is_refused_unless_it_routes_by_schema():
    def deck(routing: str) -> Deck:
        one = ModelSpec(key="one", provider="offline", concurrent_tool_calls=False, routing=routing)  # type: ignore[arg-type]
        lead = AgentCard(id="orchestrator", description="Routes.", model="one", sub_agents=("a",))
        cards = [lead, AgentCard(id="a", description="d", model="one")]
        return Deck.of(
            cards,
            settings=DeckSettings(orchestrator="orchestrator", required_blocks=()),
            models=[one],
        )

    with pytest.raises(BindError, match="one tool call at a time"):
        bind(deck("native"))
    assert bind(deck("json_schema")).root == "orchestrator"


async def _nobody(*_: Any) -> Any:
    raise AssertionError("nothing is called at bind")


@pytest.mark.req("PC1-S5.2b")
async def test_llm_feedback_stores_what_the_thumbs_store():
    from kit.tools.feedback import feedback_tool

    lead = AgentCard(
        id="orchestrator",
        description="R.",
        model="offline",
        tools=("llm_feedback",),
        sub_agents=("a",),
    )
    given = ("llm_feedback", {"verdict": "bad", "note": "wrong store"})
    say = Line(calls=[given], ids=["x"])
    kit = small_kit(ScriptedModel(), {"a": answering("A")})
    model = ScriptedModel("First answer.", say, say, "Thanks for telling me.")
    tools = {"llm_feedback": feedback_tool("llm_feedback", kit.store)}
    kit.team = bind(small_deck(["a"], [lead]), {"orchestrator": model, "a": answering("A")}, tools)
    first = await run_turn("which store?", ALICE, kit)
    second = await run_turn("that was the wrong store", ALICE, kit)
    kept = kit.store.feedback(first.turn_id)
    assert kept is not None and (kept.score, kept.note) == (0, "wrong store")
    assert second.text == "Thanks for telling me." and second.routing.invoked == ()
    answered = [m.tool_call_id for m in model.seen[-1] if isinstance(m, ToolMessage)]
    assert len(set(answered)) == 2, "each call is answered under an id of its own"


@pytest.mark.req("PC1-D4")
def test_a_tool_is_made_from_card_settings_and_flags_resolved_at_bind():
    made: list[Mapping[str, Any]] = []

    def factory(config: Mapping[str, Any]) -> BaseTool:
        made.append(config)
        return lookup

    card = AgentCard(
        id="a",
        description="d",
        model="offline",
        tools=("lookup",),
        tool_config={"lookup": {"limit": 1, "x": 1}},
    )
    lead = AgentCard(id="orchestrator", description="R.", model="offline", sub_agents=("a",))
    for flag in (False, True):
        deck = Deck.of(
            [lead, card],
            settings=DeckSettings(orchestrator="orchestrator", required_blocks=()),
            tool_settings={"lookup": {"limit": 5, "y": 2}},
            flags={"wide": flag},
            flag_settings={"wide": {"lookup": {"limit": 12}}},
        )
        bind(deck, "offline", {"lookup": ConfiguredTool(factory)})
    assert made == [{"limit": 5, "x": 1, "y": 2}, {"limit": 12, "x": 1, "y": 2}]


async def test_any_langchain_tool_works_and_one_that_raises_is_told_as_unavailable():
    card = AgentCard(id="a", description="d", model="offline", tools=("lookup", "explode"))
    worker = ScriptedModel(
        Line(calls=[("lookup", {"key": "k"}), ("explode", {"key": "k"}), ("forbidden", {})]),
        lambda seen: Line(" / ".join(str(m.content) for m in seen[-3:])),
    )
    kit = small_kit(
        [asks("a"), stitched], {"a": worker}, {"lookup": lookup, "explode": explode}, cards=[card]
    )
    reply = await run_turn("look it up", ALICE, kit)
    (outcome,) = reply.outcomes
    assert isinstance(outcome, Answer)
    told = "value of k / This data is unavailable right now."
    assert outcome.text.startswith(f"{told} / You have no such tool.")
    assert reply.text.startswith(told) and "no such tool" not in reply.text
    errors = {s.name: s.error for s in reply.trace.spans if s.kind == "tool"}
    assert "secret=/srv/x" in (errors["explode"] or "") and "not on the card" in (
        errors["forbidden"] or ""
    )


async def test_an_agent_past_its_tool_calls_fails_by_budget():
    card = AgentCard(
        id="a",
        description="d",
        model="offline",
        tools=("lookup",),
        policy={"max_tool_calls": 3},  # type: ignore
    )
    endless = ScriptedModel(lambda _: Line(calls=[("lookup", {"key": "k"})]))
    kit = small_kit([asks("a"), stitched], {"a": endless}, {"lookup": lookup}, cards=[card])
    reply = await run_turn("look it up", ALICE, kit)
    [outcome] = reply.outcomes
    assert isinstance(outcome, Failure) and outcome.reason == "budget"
    assert reply.usage.tool_calls == 3


def test_binding_costs_about_half_a_millisecond_of_cpu_a_card():
    from tests.worlds import toolbox

    deck = load_deck(HOME / "cards" / "consumer")
    box = toolbox(_nobody, _nobody)  # type: ignore[arg-type]
    seconds = effort(lambda: bind(deck, "offline", box), plays=7)
    # Machines differ by half even at the pace of the same reference work.
    assert seconds * 1e3 / len(deck.cards) <= 0.5 * 1.5
