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
from typing import Any

from kit.compose.topology import DRAFT, Topology
from kit.core.bodies.call import AnswerChosen
from kit.core.card import AgentCard, Policy
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.core.schema.json_value import is_object
from kit.runtime.agents.contract import Breach, contract_of
from kit.runtime.context import Agent, RunContext
from kit.runtime.dispatch import dispatch, together
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
        return outcome.replace(call_id=call.call_id, agent=call.agent)


def with_topologies(team: Team, surface: str | None = None) -> Team:
    """The same team with the topologies of one surface in place; the deck's own surface when none is named."""
    topologies = team.deck.settings.topologies.get(surface or team.deck.surface, {})
    agents: dict[str, Agent] = {}
    for agent_id, topology in topologies.items():
        bound = [member for member in topology.members if member in team.agents]
        # What an environment leaves unbound cannot race.
        if topology.kind == "delegate" or len(bound) < 2:
            continue
        names: list[str] = []
        for number, member in enumerate(bound, 1):
            # The asked agent itself, and one that is a member twice, need names that differ from its own.
            is_alone = member != agent_id and bound.count(member) == 1
            name = member if is_alone else f"{member}~{number}"
            names.append(name)
            agents[name] = team.agents[member]
        card = team.agents[agent_id].card
        below = list(names)
        if topology.judge:
            below.append(topology.judge)
        rubric = None
        if card.eval is not None:
            rubric = team.deck.rubrics.get(card.eval.rubric)
        agents[agent_id] = TopologyAgent(
            card.replace(sub_agents=tuple(below)),
            topology,
            tuple(names),
            rubric.text if rubric is not None else "",
        )
    if agents:
        return team.with_agents(agents)
    return team


async def race(
    asked_agent: TopologyAgent, members: Sequence[str], call: AgentCall, ctx: RunContext
) -> Verdict:
    """Takes the first answer that meets the bar and stops the others; else the best with a caveat, else a failure."""
    bar = asked_agent.topology.bar
    tasks: dict[asyncio.Task[Outcome], str] = {}
    for number, member in enumerate(members, 1):
        tasks[asyncio.create_task(_ask_member(call, member, number, ctx))] = member
    finished: list[tuple[Outcome, str]] = []
    pending = set(tasks)
    try:
        while pending:
            complete, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            # Of those that end at one moment the first listed wins: a set has no order.
            for task, member in tasks.items():
                if task not in complete:
                    continue
                outcome = task.result()
                if isinstance(outcome, Answer):
                    if bar is None:
                        return outcome, member, "the first to answer"
                    if (outcome.confidence or 0.0) >= bar:
                        return outcome, member, f"the first to meet {bar:g}"
                finished.append((outcome, member))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return _best(finished, UNSURE, "none met the bar")


async def ensemble(
    asked_agent: TopologyAgent, members: Sequence[str], call: AgentCall, ctx: RunContext
) -> Verdict:
    """Asks all members; the judge picks an answer by the rubric, or merges them."""
    work = [_ask_member(call, member, number, ctx) for number, member in enumerate(members, 1)]
    results = await together(work)
    failures: list[Outcome] = []
    answers: list[tuple[Answer, str]] = []
    for result, member in zip(results, members, strict=True):
        if isinstance(result, Answer):
            answers.append((result, member))
        else:
            failures.append(result)
    if not answers:
        return failures[0], None, "none answered"
    if len(answers) == 1:
        return *answers[0], "only one answered"
    judge_call = _to_judge(asked_agent, call, [answer for answer, _ in answers])
    judgement = await dispatch(judge_call, ctx, "2.1")
    verdict = _read(judgement)
    best = verdict.get("best")
    if not isinstance(best, int) or not 1 <= best <= len(answers):
        return _best([*answers], UNJUDGED, "the judge did not say")
    answer, member = answers[best - 1]
    reading = _merged(asked_agent.card, verdict.get("merged"))
    if reading is not None:
        text, confidence = reading
        merged = answer.replace(text=text, confidence=confidence or answer.confidence)
        for other, _ in answers:
            merged = _with_gaps_of(other, merged)
        return merged, None, "merged by the judge"
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
    over = call.replace(fields={**call.fields, DRAFT: draft.text})
    if len(members) > 1:
        revision = await _ask_member(over, members[1], 2, ctx)
        if isinstance(revision, Answer):
            return _with_gaps_of(draft, revision), members[1], "gone over"
    return draft.with_reservation(UNCHECKED), members[0], "the second could not go over it"


def _with_gaps_of(source: Answer, answer: Answer) -> Answer:
    """Returns an answer made of another one, with what that lacked: whoever goes over it cannot fill its gaps."""
    if source == answer or not source.reservation:
        return answer
    faults = tuple(dict.fromkeys([*answer.data_faults, *source.data_faults]))
    return answer.with_reservation(source.reservation).replace(data_faults=faults)


_KINDS: Mapping[
    str, Callable[[TopologyAgent, Sequence[str], AgentCall, RunContext], Awaitable[Verdict]]
] = {
    "race": race,
    "ensemble": ensemble,
    "pipeline": pipeline,
}


async def _ask_member(call: AgentCall, member: str, position: int, ctx: RunContext) -> Outcome:
    member_call = call.replace(agent=member, call_id=f"{call.call_id}-{position}")
    return await dispatch(member_call, ctx, f"1.{position}")


def _to_judge(asked_agent: TopologyAgent, call: AgentCall, answers: Sequence[Answer]) -> AgentCall:
    parts = [f"Candidate {number}:\n{answer.text}" for number, answer in enumerate(answers, 1)]
    candidates = "\n\n".join(parts)
    query = f"Request: {call.query}\n\nCriteria:\n{asked_agent.rubric}\n\n{candidates}"
    return AgentCall(
        call_id=f"{call.call_id}-judge", agent=asked_agent.topology.judge or "", query=query
    )


def _read(outcome: Outcome) -> Mapping[str, Any]:
    """Returns what a judge submitted; {} when it failed. Its shape was checked by its own contract."""
    read: object = json.loads(outcome.text) if isinstance(outcome, Answer) else None
    if is_object(read):
        return read
    return {}


def _merged(card: AgentCard, value: object) -> tuple[str, float | None] | None:
    """Returns what a judge made of several answers, as the card's own contract reads it; None where
    that is no answer."""
    if not value:
        return None
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    if not text:
        return None
    reading = contract_of(card).read(text)
    if isinstance(reading, Breach):
        return None
    return reading


def _best(finished: Sequence[tuple[Outcome, str]], caveat: str, because: str) -> Verdict:
    """Returns the surest answer with a caveat; else the failure that has a suggestion, else the first failure."""
    answers: list[tuple[Answer, str]] = []
    failures: list[Outcome] = []
    unsure: list[Outcome] = []
    for outcome, member in finished:
        if isinstance(outcome, Answer):
            answers.append((outcome, member))
        elif outcome.suggestion:
            unsure.append(outcome)
        else:
            failures.append(outcome)
    if answers:
        answer, member = max(answers, key=lambda pair: pair[0].confidence or 0.0)
        return answer.with_reservation(caveat), member, f"{because}: the best that finished"
    return (unsure or failures)[0], None, f"{because}: none answered"
