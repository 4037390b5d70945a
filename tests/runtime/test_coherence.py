"""What is lost between turns shows in the metrics: recall, resolution, routing, scores (PC1-S9.5-4)."""

from collections.abc import Callable, Sequence

import pytest
from langchain_core.messages import BaseMessage

from kit.core.context import Session
from kit.metrics.summary import Label, Metrics, metrics
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from tests.kits import ALICE, asks, small_kit, stitched

COFFEES = ("Ember Hill", "Harbor Roast", "Slow Tide", "North Pier", "Blue Gate", "Old Mill")
"""What each episode is about: known to its first turn alone."""
QUESTION = "how many points would that coffee bring me?"
CHAT = ("tell me about games", "more about games", "and one more game", "thanks for the game")


def heard(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(str(message.content) for message in messages)


def lead(messages: list[BaseMessage]) -> Line:
    """An orchestrator that can only pass on what it was given to read: without the coffee's name it
    asks the wrong one."""
    if messages[-1].type == "tool":
        return stitched(messages)
    request = str(messages[-1].content)
    if "game" in request:
        return asks("play", query=request)
    if request != QUESTION:
        return asks("shop", query=request)
    known = next((coffee for coffee in COFFEES if coffee in heard(messages)), None)
    if known is None:
        return asks("shop", query=request)
    query = {
        "query": request,
        "intent_count": 1,
        "prior_context": f"The user looked at {known} coffee and wants its points.",
    }
    return Line("Let me look.", calls=[("ask_rewards", query)])


def points(messages: list[BaseMessage]) -> Line:
    known = next((coffee for coffee in COFFEES if coffee in heard(messages)), None)
    return Line(f"{known} coffee brings 120 points." if known else "Which coffee do you mean?")


def keeps(messages: list[BaseMessage]) -> str:
    return (
        f"The user looked at "
        f"{next(coffee for coffee in COFFEES if coffee in heard(messages))} coffee, then at games."
    )


def loses(messages: list[BaseMessage]) -> str:
    return "The user looked at a few things, then at games."


async def episodes(summarise: Callable[[list[BaseMessage]], str]) -> Metrics:
    """Six episodes that differ in nothing but how old turns are summed up; labels say what a careful reader would."""
    subs = {
        "shop": ScriptedModel(lambda m: Line(f"Here is {m[-1].content}.")),
        "rewards": ScriptedModel(points),
    }
    subs["play"] = ScriptedModel(lambda _: Line("Two games are on."))
    kit = small_kit([], subs, compact_after=4, compact_keep=1)
    helper = ScriptedModel(
        lambda m: Line(summarise(m) if "Sum up" in str(m[-1].content) else "The user likes games.")
    )
    kit.team = bind(
        kit.team.deck, {**subs, "orchestrator": ScriptedModel(lead), "helper": helper}, {}
    )
    labels: list[Label] = []
    for number, coffee in enumerate(COFFEES):
        session = Session(id=f"e{number}", principal=ALICE.principal)
        for message in (f"{coffee} coffee", *CHAT):
            await run_turn(message, session, kit)
        reply = await run_turn(QUESTION, session, kit)
        labels.append(
            Label(
                turn_id=reply.turn_id,
                agents=("rewards",),
                carried=(coffee,),
                resolved=coffee in reply.text,
            )
        )
    return metrics(kit.store, labels=labels)


def told(found: Metrics) -> dict[str, float | None]:
    rate = found.shares("routing_accuracy")["rewards"].value
    return {
        "routing": rate,
        "recall": found.share("prior_context_recall").value,
        "resolution": found.share("reference_resolution_rate").value,
    }


@pytest.mark.req("PC1-S9.5-4")
async def test_a_worse_summary_shows_in_the_routing_and_coherence_metrics():
    good, bad = await episodes(keeps), await episodes(loses)
    compacted = good.share("compaction_rate")
    assert compacted == bad.share("compaction_rate") and (compacted.right or 0) >= len(COFFEES)
    assert told(good) == {"routing": 1.0, "recall": 1.0, "resolution": 1.0}
    assert told(bad) == {"routing": 0.0, "recall": 0.0, "resolution": 0.0}
