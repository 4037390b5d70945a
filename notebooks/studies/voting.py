"""One answer, or several and a judge: what an ensemble buys and costs, by how often its members err
together.

Members and judge are scripted after laws. Asking all members at once, the judge's call and what it
reads, its verdict and the seconds of all that are the real ones.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from kit.compose.deck import Deck
from kit.compose.parts import DeckSettings
from kit.compose.topology import Rubric, Topology
from kit.core.card import AgentCard, EvalPolicy
from kit.core.outcome import AgentCall, Answer
from kit.core.simulation import LogNormal
from kit.core.value import Value
from kit.models.scripted import Line, ScriptedModel
from kit.models.seeded_draws import draws
from kit.patterns.topology import with_topologies
from kit.runtime.clock import run_virtual
from kit.runtime.dispatch import dispatch
from kit.runtime.team import Team, bind
from studies.study_deck import ORCHESTRATOR, direct_context, plain_cards

JUDGE = "judge"
RUBRIC = Rubric(id="right", criteria=("It is right.",))
Judge = Callable[[Sequence[str], str, float], int]
"""The place of the best of these answers; the second argument is the right one, the third an even draw from 0 to 1."""
_SCHEMA = {"type": "object", "properties": {"best": {"type": "integer"}}, "required": ["best"]}
_JUDGE_CARD = AgentCard.model_validate(
    {
        "id": JUDGE,
        "description": "Names the best.",
        "model": "offline",
        "handoff": {"output_schema": _SCHEMA},
    }
)
_SETTINGS = {
    "orchestrator": ORCHESTRATOR,
    "required_blocks": (),
    "defaults": {"time_budget_ms": 600_000},
}
_QUESTION = re.compile(r"question (\d+)")
_CANDIDATE = re.compile(r"^Candidate \d+:\n(.+)$", re.MULTILINE)


class Members(Value):
    """How the members of an ensemble answer."""

    right: float = 0.7
    """Share of the questions that one of them answers right."""
    together: float = 0.0
    """Share of the questions on which all say the same, right or wrong: they were told the same, or
    learned the same."""
    mistakes: int = 4
    """How many wrong answers there are to give to a question."""
    latency: LogNormal = LogNormal(median=1.3, sigma=0.5)
    """Of a call of one of them, and of the judge."""


class EnsembleAnswer(NamedTuple):
    """One question, answered one way; a list of them is a tidy frame."""

    way: str
    together: float
    case: int
    right: bool
    seconds: float
    calls: int
    """Model calls, the judge's among them."""


def play_ensembles(
    ways: Mapping[str, tuple[int, Judge | None]],
    members: Members,
    *,
    questions: int = 100,
    seed: int = 7,
) -> list[EnsembleAnswer]:
    """Answers the same questions every way, in virtual time; blocks, so call it in a thread where a
    loop runs.

    `ways`: name -> how many members are asked (three at most), and by what the judge goes; without
    a judge the first is asked alone. That one says the same in every way, so ways pair by question.
    """

    async def play() -> list[EnsembleAnswer]:
        teams = {way: _team(count, judge, members, seed) for way, (count, judge) in ways.items()}
        return [
            await _answer(way, team, question, members, seed)
            for way, team in teams.items()
            for question in range(questions)
        ]

    return run_virtual(play())


async def _answer(
    way: str, team: Team, question: int, members: Members, seed: int
) -> EnsembleAnswer:
    ctx = direct_context(team, ["m1"])
    began = ctx.turn.log.now()
    outcome = await dispatch(AgentCall(call_id="c", agent="m1", query=f"question {question}"), ctx)
    right = isinstance(outcome, Answer) and outcome.text == _truth(question)
    return EnsembleAnswer(
        way,
        members.together,
        question,
        right,
        ctx.turn.log.now() - began,
        outcome.usage.model_calls,
    )


def _team(count: int, judge: Judge | None, members: Members, seed: int) -> Team:
    names = tuple(f"m{place}" for place in range(1, count + 1))
    models = {
        name: ScriptedModel(_member(place, members, seed)) for place, name in enumerate(names)
    }
    lead = AgentCard(id=ORCHESTRATOR, description="Asks.", model="offline", sub_agents=("m1",))
    cards, topologies = [lead, *plain_cards(names)], dict[str, Topology]()
    if judge is not None:
        models[JUDGE] = ScriptedModel(_judge(judge, members, seed))
        cards[1] = cards[1].model_copy(update={"eval": EvalPolicy(judge=JUDGE, rubric=RUBRIC.id)})
        cards.append(_JUDGE_CARD)
        topologies["m1"] = Topology(kind="ensemble", members=names, judge=JUDGE)
    settings = DeckSettings.model_validate({**_SETTINGS, "topologies": {"chat": topologies}})
    deck = Deck.of(cards, settings=settings, rubrics=[RUBRIC])
    return with_topologies(bind(deck, {"*": ScriptedModel(), **models}, {}))


def _member(place: int, members: Members, seed: int) -> Callable[[list[BaseMessage]], Line]:
    """What the member at this place says: what the first one says, where all are of one mind, else
    by a draw of its own."""

    def reply(messages: list[BaseMessage]) -> Line:
        question = _number(messages)
        all_draws, first, own = (
            draws(seed, f"question {question}", name)
            for name in ("all", "member 0", f"member {place}")
        )
        mind = first if all_draws.choice < members.together else own
        text = (
            _truth(question)
            if mind.drop < members.right
            else f"It is wrong-{int(mind.stray * members.mistakes)}."
        )
        return Line(text, delay=members.latency.quantile(own.latency))

    return reply


def _judge(judge: Judge, members: Members, seed: int) -> Callable[[list[BaseMessage]], Line]:
    def reply(messages: list[BaseMessage]) -> Line:
        question, candidates = _number(messages), _CANDIDATE.findall(messages[-1].text)
        own = draws(seed, f"question {question}", JUDGE)
        best = 1 + judge(candidates, _truth(question), own.choice)
        return Line(json.dumps({"best": best}), delay=members.latency.quantile(own.latency))

    return reply


def _number(messages: Sequence[BaseMessage]) -> int:
    match = _QUESTION.search(messages[-1].text)
    assert match is not None
    return int(match[1])


def _truth(question: int) -> str:
    return f"It is right-{question}."
