"""What compaction is worth over the length of an episode: tokens read, summaries written, facts still in view."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from kit.bench.routing import RoutingKit
from kit.core.bodies.memory import Compacted
from kit.core.event import Event
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from studies.study_deck import ORCHESTRATOR, plain_cards, study_deck, study_session

WORDS = 40
"""Words of each answer."""


@dataclass(frozen=True)
class Episode:
    """One threshold over one length, with scripted models: what the machinery does, not how well a model summarises."""

    turns: int
    after: int | None
    """Turns after which old ones are summarised."""
    keeps: float
    """Share of the facts before it that each summary holds, drawn anew for each fact each time."""
    input_tokens: int
    """Of all model calls, summaries included."""
    summaries: int
    in_view: float
    """Share of the facts of earlier turns that the last turn's routing call was shown."""


async def measure(
    lengths: Sequence[int] = (5, 10, 20, 40),
    thresholds: Sequence[int | None] = (None, 8, 16),
    keeps: float = 1.0,
    seed: int = 7,
) -> list[Episode]:
    """Plays every length at every threshold; each turn states one fact. A threshold is in turns, None never summarises.

    `keeps` is how good summaries are: 1 holds every fact, 0 none, which is the same as cutting old turns off.
    """
    return [await _episode(turns, after, keeps, seed) for turns in lengths for after in thresholds]


async def _episode(turns: int, after: int | None, keeps: float, seed: int) -> Episode:
    lead = ScriptedModel(_answer)
    deck = study_deck(
        plain_cards(["shop"]), compact_after=after, compact_keep=max(1, (after or 2) // 3)
    )
    models = {
        ORCHESTRATOR: lead,
        "shop": ScriptedModel(_answer),
        "helper": ScriptedModel(_summarise(keeps, seed)),
    }
    kit = RoutingKit(bind(deck, models, {}))
    replies = [
        await run_turn(f"fact-{number:03}", study_session("episode"), kit)
        for number in range(turns)
    ]
    kit.store.close()
    events: list[Event] = [event for reply in replies for event in reply.events]
    prompt = " ".join(str(message.content) for message in lead.seen[-1][:-1])
    return Episode(
        turns=turns,
        after=after,
        keeps=keeps,
        input_tokens=sum(reply.usage.input_tokens for reply in replies),
        summaries=sum(isinstance(event.body, Compacted) and event.body.done for event in events),
        in_view=sum(f"fact-{number:03}" in prompt for number in range(turns - 1))
        / max(1, turns - 1),
    )


def _answer(messages: list[BaseMessage]) -> Line:
    return Line(f"Noted: {messages[-1].content} " + "word " * WORDS)


def _summarise(keeps: float, seed: int) -> Callable[[list[BaseMessage]], Line]:
    rng = random.Random(seed)

    def say(messages: list[BaseMessage]) -> Line:
        facts = sorted(
            {
                word
                for message in messages
                for word in str(message.content).split()
                if word.startswith("fact-")
            }
        )
        survivors = [fact for fact in facts if rng.random() < keeps]
        return Line(calls=[("submit_summary", {"summary": " ".join(["So far:", *survivors])})])

    return say
