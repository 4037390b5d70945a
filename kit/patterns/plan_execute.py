"""Plan and execute: the message becomes a plan, each step of it runs in an executor of its own,
failures are planned around."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from kit.compose.deck import Deck
from kit.compose.registry import Registry
from kit.core.bodies.speech import Text
from kit.core.bodies.turn import PlanTaken, Resumed
from kit.core.documents.document import WAITING
from kit.core.errors import FOREIGN, BindError, describe_error
from kit.core.outcome import AgentCall, Outcome
from kit.core.secret import without_secret_words
from kit.planning.answer import answer_of, tell_stop
from kit.planning.draft import MOST_STEPS
from kit.planning.journal import Journal
from kit.planning.loop import Manager
from kit.planning.plan import MOST_REPLANS, OVER, new_plan
from kit.planning.recall import remember_answer
from kit.planning.record import PlanRecord, create, hold, take
from kit.planning.services import PlanServices, PlanTool
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.context import Agent, RunContext
from kit.runtime.pattern import Bind, Interrupted, Pattern
from kit.runtime.team import Team

log = logging.getLogger("kit.plans")
PLAN = "plan_"
"""What the id of a plan has before that of the turn it was made in."""
HOUR = 3_600_000
"""Milliseconds that a turn may take whose plan has no limit of time."""
Origin = Callable[[str], Resumed]
"""Returns what the turns of a plan have settled, without the one of that id, which takes it up."""
LACKS = (
    "this deck cannot run turns as plans: give it skills, and a planner and an executor "
    "under `planning:` (docs/plans.md)"
)


def plan_team(deck: Deck, bind: Bind) -> Team:
    """The deck with its orchestrator as the manager of a plan, who asks the planner and the executor and has no tools.

    Raises BindError where the deck has nobody to plan, or the executor no skills to call.
    """
    settings = deck.settings.planning
    if settings is None:
        raise BindError(LACKS)
    lead = deck.cards[deck.settings.orchestrator]
    manager = lead.replace(
        tools=(),
        prompt_blocks=tuple(deck.blocks_without_routing(lead)),
        sub_agents=(settings.planner, settings.executor),
        policy=settings.budget.replace(time_budget_ms=None),
    )
    turn_budget_ms = HOUR
    if settings.budget.time_budget_ms:
        # The plan ends by its own budget; what is left is for the answer.
        turn_budget_ms = settings.budget.time_budget_ms + deck.settings.turn_budget_ms
    plan_settings = deck.settings.model_copy(
        update={
            # Every step and the planner, which may have to be reminded, and all of them once more with each replan.
            "cap": (MOST_STEPS + 2) * (MOST_REPLANS + 1),
            "turn_budget_ms": turn_budget_ms,
            "default_sub_agent": None,
            "support_agent": None,
        }
    )
    cards = Registry("card", {**deck.cards, manager.id: manager})
    team = bind(replace(deck, cards=cards, settings=plan_settings))
    services_of(team.agents)
    return team


def services_of(agents: Mapping[str, Agent]) -> PlanServices:
    """What the tools of planner and executor work with. Raises BindError where no card names one of them."""
    for agent in agents.values():
        if isinstance(agent, LLMAgent):
            for tool in agent.tools.values():
                if isinstance(tool, PlanTool):
                    return tool.services
    raise BindError(LACKS)


async def run_plan(
    call: AgentCall, ctx: RunContext, plan_id: str | None = None, origin: Origin | None = None
) -> Outcome:
    """Plans the message, or takes up a plan of that id, and takes it to its end; one that is
    stopped can be taken up.

    A turn that breaks off before its plan has an end in the store, or waits there for its user, is interrupted: another
    one may go on with it.

    `origin` says what its user has answered and which acts were done in the turns that worked on it before.
    Of one that has ended, its process perhaps before it answered, the answer is given again, and
    that nothing more was done.
    """
    turn, settings = ctx.turn, ctx.turn.settings.planning
    lead = turn.agents[call.agent]
    assert isinstance(lead, LLMAgent) and settings is not None
    services = services_of(turn.agents)
    # No model splits the message here, so there is no first response to count the calls of.
    turn.noted = True
    preamble = turn.locale.line(lead.card.preamble)
    ctx.emit(Text(channel="lead", text=preamble, synthetic=True))
    # Before anything else of it: whoever resumes this turn takes up that plan.
    ctx.emit(PlanTaken(plan_id=plan_id or f"{PLAN}{turn.log.turn_id}"))
    earlier = None
    if origin is not None:
        earlier = _take_over(origin, ctx)
    try:
        record = await _record(call, ctx, services, plan_id)
    except FOREIGN as error:
        # It may be stored all the same, is at work in another turn, or has acted in an earlier one.
        raise Interrupted(describe_error(error)) from error
    if origin is not None:
        # Until now another turn may have had the plan, by the same answer given twice, and may have acted.
        _take_over(origin, ctx, earlier)
    plan = record.plan
    journal = Journal(
        services.documents.events,
        plan.owner,
        plan.session_id,
        plan.plan_id,
        clock=services.clock,
        secrets=turn.log.secrets,
    )
    manager = Manager(ctx, services, settings, record, journal)
    if plan.status in OVER:
        answer = await answer_of(manager, lead, call, ctx)
        return answer.replace(text=f"{answer.text}\n\n{turn.locale.sentences.plan_ended}")

    async def work() -> None:
        if plan.fence == 1:
            await journal.write("user_message.received")
        if services.skills.needs_key and turn.key is None:
            # It is kept until its user gives the key that the skill service wants of each request.
            await record.move(lambda plan: plan.replace(status="needs_key"))
            return
        async with services.skills.client(plan.tenant_id, turn.key) as skills:
            await manager.drive(skills)

    try:
        await hold(record, work(), lambda: turn.was_stopped)
        answer = await answer_of(manager, lead, call, ctx)
    except asyncio.CancelledError as stop:
        await tell_stop(manager, ctx)
        has_ended = manager.plan.status in OVER and turn.was_stopped
        if has_ended or manager.plan.status in WAITING:
            raise
        # Only its process ends, or the store did not take the stop: the plan is given out.
        raise Interrupted("its process ended") from stop
    # What is stored says whether it is over, and what failed here does not, be it a fault of this code or of another's:
    # a worker would go on with it. Whoever read "please try again" would do a second time what its steps have done.
    except FOREIGN as error:
        log.error("plan %s broke off", plan.plan_id, exc_info=error)
        raise Interrupted(describe_error(error)) from error
    if settings.recall and manager.plan.status == "complete":
        await remember_answer(services, manager.plan, call.agent, answer.text)
    return answer


def _take_over(origin: Origin, ctx: RunContext, before: Resumed | None = None) -> Resumed:
    """Notes what is settled in other turns of a plan, unless that is what was noted before."""
    earlier = origin(ctx.turn.log.turn_id)
    if earlier != before:
        ctx.turn.acts.entries.clear()
        ctx.turn.acts.take_over(earlier)
        ctx.emit(earlier)
    return earlier


async def _record(
    call: AgentCall, ctx: RunContext, services: PlanServices, plan_id: str | None
) -> PlanRecord:
    principal = ctx.inherited.principal
    turn_id = ctx.turn.log.turn_id
    plans = services.documents.plans
    if plan_id is not None:
        record = await take(plans, plan_id, principal, turn_id, services.lease)
        if record is not None:
            return record
        # Its process died before the plan was stored: it is made under the same id.
    task = without_secret_words(call.query, ctx.turn.log.secrets)
    plan = new_plan(
        plan_id or f"{PLAN}{turn_id}", principal, ctx.inherited.episode_id, task, services.clock()
    )
    return await create(plans, plan, turn_id, services.lease)


PLAN_EXECUTE = Pattern("plan_execute", run_plan, plan_team, is_plan=True)


def resumed(plan_id: str, origin: Origin | None = None) -> Pattern:
    """The pattern for a plan that is taken up where it stands."""
    return replace(PLAN_EXECUTE, run=partial(run_plan, plan_id=plan_id, origin=origin))
