"""Race, ensemble and pipeline: policies of one ask_ call, each an agent like any other, made of
others.

Because they are agents, whatever holds for a dispatch holds for them: one span with its members
below, one account that their spend rolls up into, a typed outcome. The caller composes as ever
(decisions 1). Members count against the cap (decisions 12).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kit.compose.topology import DRAFT, Topology
from kit.core.bodies.call import AnswerChosen
from kit.core.card import AgentCard, Policy
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.runtime.agents.contract import Breach, contract_of
from kit.runtime.context import Agent, RunContext
from kit.runtime.dispatch import dispatch
from kit.runtime.team import Team

UNSURE = "No answer to this was sure enough, so take it with care."
UNCHECKED = "This has not been gone over a second time."
UNJUDGED = "Several answers were found and none could be preferred for certain."
BELOW = Policy(max_recursion_depth=1)
"""Limits of the policy itself: one level of members, each of which keeps its own budgets."""
Verdict = tuple[Outcome, str | None, str]
"""The outcome, whose it is, and why."""


@dataclass(frozen=True)
class TopologyAgent:
    """An asked agent whose calls several carry out."""

    card: AgentCard
    """The asked agent's card, its members in the place of sub-agents."""
    topology: Topology
    members: tuple[str, ...]
    rubric: str = ""
    policy: Policy = BELOW
    time_budget: float | None = None

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        """Puts as many members to work as the cap leaves room for; one alone is asked in any case."""
        ctx.turn.progress.excuse(ctx.path)  # its members are heard in its place
        members = self.members[: 1 + ctx.turn.take(len(self.members) - 1)]
        kind = self.topology.kind
        assert kind != "delegate", "a delegate is the agent itself"
        outcome, winner, because = await _KINDS[kind](self, members, call, ctx)
        ctx.emit(
            AnswerChosen(
                agent=call.agent,
                call_id=call.call_id,
                policy=kind,
                members=members,
                winner=winner,
                because=because,
            )
        )
        return outcome.model_copy(update={"call_id": call.call_id, "agent": call.agent})


def with_topologies(team: Team, surface: str | None = None) -> Team:
    """The same team with the topologies of one surface in place; the deck's own surface when none is named."""
    topologies = team.deck.settings.topologies.get(surface or team.deck.surface, {})
    agents: dict[str, Agent] = {}
    for agent_id, topology in topologies.items():
        bound: list[str] = []
        for member in topology.members:
            if member in team.agents:
                bound.append(member)
        if topology.kind == "delegate" or len(bound) < 2:
            continue  # what an environment leaves unbound cannot race
        names: list[str] = []
        for n, m in enumerate(bound, 1):
            names.append(m if m != agent_id and bound.count(m) == 1 else f"{m}~{n}")
        agents |= {name: team.agents[member] for name, member in zip(names, bound, strict=True)}
        card = team.agents[agent_id].card
        below = (*names, *([topology.judge] if topology.judge else ()))
        if card.eval is not None:
            rubric = team.deck.rubrics.get(card.eval.rubric)
        else:
            rubric = None
        if rubric is not None:
            text = rubric.text
        else:
            text = ""
        agents[agent_id] = TopologyAgent(
            card.model_copy(update={"sub_agents": below}), topology, tuple(names), text
        )
    if agents:
        return team.with_agents(agents)
    return team


async def race(
    asked_agent: TopologyAgent, members: Sequence[str], call: AgentCall, ctx: RunContext
) -> Verdict:
    """Takes the first answer that meets the bar and stops the others; else the best with a caveat, else a failure."""
    bar = asked_agent.topology.bar
    tasks = {
        asyncio.create_task(_ask_member(call, member, n, ctx)): member
        for n, member in enumerate(members, 1)
    }
    finished: list[tuple[Outcome, str]] = []
    pending = set(tasks)
    try:
        while pending:
            complete, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in (
                task for task in tasks if task in complete
            ):  # of those that end at one moment, the first listed
                outcome = task.result()
                if isinstance(outcome, Answer) and (
                    bar is None or (outcome.confidence or 0.0) >= bar
                ):
                    return (
                        outcome,
                        tasks[task],
                        "the first to answer" if bar is None else f"the first to meet {bar:g}",
                    )
                finished.append((outcome, tasks[task]))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return _best(finished, UNSURE, "none met the bar")


async def ensemble(
    asked_agent: TopologyAgent, members: Sequence[str], call: AgentCall, ctx: RunContext
) -> Verdict:
    """Asks all members; the judge picks an answer by the rubric, or merges them."""
    results = await asyncio.gather(
        *(_ask_member(call, m, n, ctx) for n, m in enumerate(members, 1)), return_exceptions=True
    )
    outcomes: list[Outcome] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        outcomes.append(result)
    answers = [
        (outcome, member)
        for outcome, member in zip(outcomes, members, strict=True)
        if isinstance(outcome, Answer)
    ]
    if not answers:
        return outcomes[0], None, "none answered"
    if len(answers) == 1:
        return *answers[0], "only one answered"
    judgement = await dispatch(
        _to_judge(asked_agent, call, [answer for answer, _ in answers]), ctx, "2.1"
    )
    verdict = _read(judgement)
    best = verdict.get("best")
    if not isinstance(best, int) or not 1 <= best <= len(answers):
        return _best(list[tuple[Outcome, str]](answers), UNJUDGED, "the judge did not say")
    answer, member = answers[best - 1]
    if merged := _merged(asked_agent.card, verdict.get("merged")):
        text, confidence = merged
        merged_answer = answer.model_copy(
            update={"text": text, "confidence": confidence or answer.confidence}
        )
        return merged_answer, None, "merged by the judge"
    return answer, member, "preferred by the judge"


async def pipeline(
    asked_agent: TopologyAgent, members: Sequence[str], call: AgentCall, ctx: RunContext
) -> Verdict:
    """Has the first member draft and the second revise; a draft that is sure enough, or that nobody revises, stands."""
    bar = asked_agent.topology.bar
    draft = await _ask_member(call, members[0], 1, ctx)
    if isinstance(draft, Failure):
        return draft, None, "there was no draft"
    if bar is not None and (draft.confidence or 0.0) >= bar:
        return draft, members[0], f"the draft was sure enough, {bar:g}"
    over = call.model_copy(update={"fields": {**call.fields, DRAFT: draft.text}})
    if len(members) > 1:
        second = await _ask_member(over, members[1], 2, ctx)
    else:
        second = None
    if isinstance(second, Answer):
        return second, members[1], "gone over"
    return _with_caveat(draft, UNCHECKED), members[0], "the second could not go over it"


_KINDS: Mapping[
    str, Callable[[TopologyAgent, Sequence[str], AgentCall, RunContext], Awaitable[Verdict]]
] = {
    "race": race,
    "ensemble": ensemble,
    "pipeline": pipeline,
}


async def _ask_member(call: AgentCall, member: str, position: int, ctx: RunContext) -> Outcome:
    own = call.model_copy(update={"agent": member, "call_id": f"{call.call_id}-{position}"})
    return await dispatch(own, ctx, f"1.{position}")


def _to_judge(asked_agent: TopologyAgent, call: AgentCall, answers: Sequence[Answer]) -> AgentCall:
    candidates = "\n\n".join(
        f"Candidate {n}:\n{answer.text}" for n, answer in enumerate(answers, 1)
    )
    query = f"Request: {call.query}\n\nCriteria:\n{asked_agent.rubric}\n\n{candidates}"
    return AgentCall(
        call_id=f"{call.call_id}-judge", agent=asked_agent.topology.judge or "", query=query
    )


def _read(outcome: Outcome) -> Mapping[str, Any]:
    """Returns what a judge submitted; {} when it failed. Its shape was checked by its own contract."""
    read: object = json.loads(outcome.text) if isinstance(outcome, Answer) else None
    if isinstance(read, dict):
        return cast("Mapping[str, Any]", read)
    return {}


def _merged(card: AgentCard, value: object) -> tuple[str, float | None] | None:
    """Returns what a judge made of several answers, as the card's own contract reads it; None where
    that is no answer."""
    if isinstance(value, str):
        text = value.strip()
    elif value:
        text = json.dumps(value)
    else:
        text = ""
    if text:
        reading = contract_of(card).read(text)
    else:
        reading = None
    if isinstance(reading, Breach):
        return None
    return reading


def _best(finished: Sequence[tuple[Outcome, str]], caveat: str, because: str) -> Verdict:
    """Returns the surest answer with a caveat; else the failure that has a suggestion, else the first failure."""
    answers = [(outcome, member) for outcome, member in finished if isinstance(outcome, Answer)]
    if answers:
        answer, member = max(answers, key=lambda pair: pair[0].confidence or 0.0)
        return _with_caveat(answer, caveat), member, f"{because}: the best that finished"
    unsure: list[Failure] = []
    for outcome, _ in finished:
        if isinstance(outcome, Failure) and outcome.suggestion:
            unsure.append(outcome)
    return (unsure or [outcome for outcome, _ in finished])[0], None, f"{because}: none answered"


def _with_caveat(answer: Answer, caveat: str) -> Answer:
    return answer.model_copy(update={"caveat": " ".join(filter(None, [answer.caveat, caveat]))})
