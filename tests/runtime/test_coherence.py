"""What is lost between turns shows in the metrics: recall, resolution, routing, scores (PC1-S10.2, PC1-S9.5-4)."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool, StructuredTool

from kit.core.card import AgentCard
from kit.core.context import Session
from kit.core.outcome import ComponentPayload
from kit.metrics.summary import Label, Metrics, metrics
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.tools.tool import ToolResult
from tests.kits import ALICE, SmallKit, asks, small_kit, stitched

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


# ── metrics() of section 10.2, every one from stored turns ──────────────────────────────────────────


def catalogue() -> BaseTool:
    """Shows three offers."""

    async def offers() -> tuple[str, ToolResult]:
        parts = tuple(
            ComponentPayload(type="offer", payload={"id": f"of-{n}", "title": f"{coffee} coffee"})
            for n, coffee in enumerate(COFFEES[:3], 1)
        )
        return "three offers", ToolResult(text="three offers", components=parts)

    return StructuredTool.from_function(
        coroutine=offers, name="offers", description="O.", response_format="content_and_artifact"
    )


def shop(messages: list[BaseMessage]) -> Line:
    if messages[-1].type == "tool":
        return Line("I found 3 coffee deals: Ember Hill, Harbor Roast and Slow Tide.")
    return Line(calls=[("offers", {})])


def rewards(messages: list[BaseMessage]) -> Line:
    if "Slow Tide" in heard(messages):
        return Line("Slow Tide coffee brings 120 points.", delay=0.2)
    return Line(
        "You have 4,975 points."
        if "do I have" in str(messages[-1].content)
        else "# Which?\n{id: 7} error_code=503"
    )


def chooser(tells: bool) -> Callable[[list[BaseMessage]], Line]:
    """Reads "the third one" in the lines it is given, or does not."""

    def line(messages: list[BaseMessage]) -> Line:
        if messages[-1].type == "tool":
            return stitched(messages)
        request = str(messages[-1].content)
        if "third" not in request:
            return Line(
                "Let me look.",
                calls=asks("shop" if "deals" in request else "rewards", query=request).calls,
                delay=0.5,
            )
        prior = (
            {"prior_context": "The user means Slow Tide coffee."}
            if tells and "3. offer of-3: Slow Tide" in heard(messages)
            else {}
        )
        return Line(
            "Let me look.",
            calls=[("ask_rewards", {"query": request, "intent_count": 1, **prior})],
            delay=0.5,
        )

    return line


async def consumer(tells: bool) -> SmallKit:
    cards = [AgentCard(id="shop", description="S.", model="offline", tools=("offers",))]
    subs = {"shop": ScriptedModel(shop), "rewards": ScriptedModel(rewards)}
    kit = small_kit([], subs, {"offers": catalogue()}, cards, compact_after=2, compact_keep=1)
    helper = ScriptedModel(
        lambda m: Line(
            "Coffee." if "Sum up" in str(m[-1].content) else "The user looked at coffee.", delay=0.3
        )
    )
    models: dict[str, Any] = {
        **subs,
        "orchestrator": ScriptedModel(chooser(tells)),
        "helper": helper,
    }
    kit.team = bind(kit.team.deck, models, {"offers": catalogue()})
    for message in (
        "find coffee deals",
        "how many points for the third offer you showed me?",
        "how many points do I have?",
    ):
        await run_turn(message, ALICE, kit)
    return kit


def labels_of_a_reader(kit: SmallKit) -> list[Label]:
    """What a careful reader says of the three turns, the newest first as the store has them."""
    points, third, deals = kit.store.turns()
    meant = "Slow Tide" in third.text
    safe, raw = {"safety": 1.0}, {"safety": 0.0}
    return [
        Label(turn_id=points.id, agents=("rewards",), scores={"rewards": safe}),
        Label(
            turn_id=third.id,
            agents=("rewards",),
            carried=("Slow Tide coffee",),
            resolved=meant,
            scores={"rewards": safe if meant else raw},
        ),
        Label(turn_id=deals.id, agents=("shop",), scores={"shop": safe}),
    ]


@pytest.mark.req("PC1-S10.2")
@pytest.mark.parametrize("tells", [True, False])
async def test_one_call_gives_every_metric_of_section_10_2_and_a_reader_who_misses_shows(
    tells: bool,
):
    kit = await consumer(tells)
    found = metrics(kit.store, labels=labels_of_a_reader(kit))
    assert {
        name: (rate.right, rate.n) for name, rate in found.shares("routing_accuracy").items()
    } == {
        "rewards": (2, 2),
        "shop": (1, 1),
    }
    # Deciding takes 0.5 s; where its model wrote no prior_context, the helper's 0.3 s come on top. Summing up does not.
    assert found.number("orchestrator_seconds_p95") == pytest.approx(0.5 if tells else 0.8)
    assert found.numbers("fan_out") == {"1": 3} and (
        found.share("compaction_rate").right,
        found.share("compaction_rate").n,
    ) == (1, 3)
    recall, resolved = found.share("prior_context_recall"), found.share("reference_resolution_rate")
    assert (recall.right, recall.n) == (int(tells), 1) and (resolved.right, resolved.n) == (
        int(tells),
        1,
    )
    assert found.numbers("score") == {
        "rewards: safety": 1.0 if tells else 0.5,
        "shop: safety": 1.0,
    }
    names = {row["metric"] for row in found.rows() if row["value"] is not None}
    assert {
        "routing_accuracy",
        "orchestrator_seconds_p95",
        "fan_out",
        "prior_context_recall",
        "score",
        "compaction_rate",
        "reference_resolution_rate",
    } <= names
