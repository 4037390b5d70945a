"""What the user reads of a plan: an answer composed from the outputs of its steps, or fixed words
for where it stopped."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from kit.compose.locale import Sentences
from kit.core.bodies.speech import Acknowledged, Text
from kit.core.bodies.turn import Act, PlanEnded
from kit.core.documents.document import Plan, PlanStep
from kit.core.errors import StoreError
from kit.core.outcome import AgentCall, Answer, Outcome, Reason
from kit.models.message import tool_text
from kit.planning.answer_sections import Section, sections_of
from kit.planning.loop import Manager
from kit.planning.output_words import earlier_steps, wordings, words_of
from kit.planning.plan import OVER, complete_steps, failed_step
from kit.planning.record import outputs_of
from kit.runtime.act_ledger import DECLINED, LedgerEntry
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.answer.acknowledge import acknowledge
from kit.runtime.answer.owed import owed_by
from kit.runtime.answer.raw_text import leaks, scrub
from kit.runtime.context import RunContext
from kit.runtime.dispatch import run_to_outcome
from kit.runtime.message import instructed

SYNTHESIS = "The plan for this request is done. Answer it from what its steps returned, and from nothing else."


async def answer_of(manager: Manager, lead: LLMAgent, call: AgentCall, ctx: RunContext) -> Answer:
    """Returns the answer to a plan that has ended; one that failed says so, and says what is done, and so does one
    that its user said no to.

    One that waits for a key says that.
    """
    plan = manager.plan
    sentences = ctx.turn.locale.sentences
    if plan.status in OVER:
        status = "failed" if plan.status == "failed" else "complete"
        ctx.emit(PlanEnded(plan_id=plan.plan_id, status=status, failure=plan.failure))
    outputs = await outputs_of(plan, manager.services.documents.memory)
    if plan.status != "complete":
        # In fixed words: a model would explain away what it does not know.
        text = sentences.plan_needs_key
        if plan.status != "needs_key":
            text = stop_words(plan, ctx, outputs)
        if plan.status == "cancelled":
            executor = call.replace(call_id=plan.plan_id, agent=manager.settings.executor)
            ctx.turn.record([executor.answered(text).with_reservation(DECLINED)], [executor])
        else:
            ctx.turn.record(*_failure(manager))
        ctx.emit(Acknowledged(path="rescued", owed=owed_by(ctx.turn).agents))
        return call.answered(text)
    sections = sections_of(plan.steps, outputs, plan.original_task, sentences)
    asks, results = _as_calls(plan, sections)
    ctx.turn.in_own_words = False
    ctx.turn.record(*_step_answers(plan, sections, manager.settings.executor))
    thread = instructed(lead.open(call, ctx), SYNTHESIS)
    thread += [AIMessage("", tool_calls=asks), *results]

    async def compose(call: AgentCall, ctx: RunContext) -> Outcome:
        reply = await lead.compose(thread, call, ctx, live=False, news=len(results))
        return call.answered(reply.text)

    outcome = await run_to_outcome(compose, call, ctx, lead.time_budget)
    if isinstance(outcome, Answer):
        text = await acknowledge(outcome.text, lead, thread, call, ctx, clean=True)
    else:
        # What the steps came to is in words already.
        text = scrub("\n\n".join([section.text for section in sections]), ctx)
    return call.answered(f"{text}\n\n{done_words(plan, sentences)}")


def _as_calls(plan: Plan, sections: Sequence[Section]) -> tuple[list[ToolCall], list[ToolMessage]]:
    """Returns the sections as the model that answers reads them: as results of what it asked for."""
    steps = {step.step_index: step for step in plan.steps}
    asks: list[ToolCall] = []
    results: list[ToolMessage] = []
    for section in sections:
        of_section = [steps[number] for number in section.findings]
        call_id = of_section[0].task_id or ""
        query = "; ".join(step.task for step in of_section)
        name = f"ask_step_{of_section[0].step_index}"
        asks.append(ToolCall(name=name, args={"query": query}, id=call_id))
        results.append(tool_text(section.text, call_id))
    return asks, results


def _step_answers(
    plan: Plan, sections: Sequence[Section], executor: str
) -> tuple[list[Answer], list[AgentCall]]:
    """Returns what the steps say as answers, which no composition may lose, and the request of each."""
    steps = {step.step_index: step for step in plan.steps}
    answers: list[Answer] = []
    calls: list[AgentCall] = []
    for section in sections:
        for number, words in section.findings.items():
            if not words:
                continue
            # A step stands for what the steps before it were asked too: it was done with what they gave.
            tasks = [steps[earlier].task for earlier in earlier_steps(number, plan.steps)]
            query = "; ".join([*tasks, steps[number].task])
            call = AgentCall(call_id=steps[number].task_id or "", agent=executor, query=query)
            answers.append(call.answered(words))
            calls.append(call)
    return answers, calls


def done_words(plan: Plan, words: Sentences) -> str:
    """Says in how many steps a plan was done, and which failed on the way: no model may pass over that."""
    count = len(plan.steps)
    sentence = words.plan_done_one if count == 1 else words.plan_done.format(count=count)
    failed = dict.fromkeys(str(replan.failed_step) for replan in plan.replan_history)
    if not failed:
        return sentence
    return f"{sentence} {words.plan_again.format(steps=', '.join(failed))}"


def stop_words(plan: Plan, ctx: RunContext, outputs: Mapping[int, Any]) -> str:
    """Says in the session's language why a plan stopped, what it did or may have done, what its steps came to and
    which were not done; nothing here was worded by a model. Empty where it has done nothing, and nothing has failed."""
    words = ctx.turn.locale.sentences
    acts = _acts(plan, ctx)
    complete = complete_steps(plan)
    parts = list(acts.values())
    if plan.status == "failed" and plan.failure_kind != "uncertain":
        reason = _stop_reason(plan, failed_step(plan), words)
        if plan.steps and not complete and not acts:
            reason += f" {words.plan_no_steps}"
        parts.insert(0, reason)
    if not parts and not complete:
        return ""
    lead = "\n".join(parts)
    if complete:
        by_step = wordings(plan.steps, outputs, plan.original_task, words)
        parts.append(words.plan_steps)
        for done in complete:
            heading = f"{done.step_index}. {_quote(done.task)}"
            came_to = words.plan_gone
            if done.step_index in outputs:
                came_to = words_of(outputs[done.step_index], by_step[done.step_index])
            block = f"**{heading}:** {came_to}"
            # What a service put into its result is read by no guard here.
            parts.append(f"**{heading}**" if leaks(block, ctx) else block)
    remaining: list[str] = []
    for other in plan.steps:
        task = _quote(other.task)
        # The step that the plan failed of is named before, and so is one that has acted.
        if other.status != "complete" and task not in lead:
            remaining.append(task)
    if remaining:
        parts.append(words.plan_left.format(steps="; ".join(remaining)))
    return "\n\n".join(parts)


def _acts(plan: Plan, ctx: RunContext) -> dict[str, str]:
    """Returns what a plan did, may have done or was not to do beside its complete steps: task -> in words."""
    locale = ctx.turn.locale
    acts: dict[str, str] = {}
    for step in plan.steps:
        # Its process may have died in the middle of it.
        if step.status == "uncertain":
            acts[step.task] = LedgerEntry(what=step.task, act=Act()).sentence(locale)
    complete = {step.task for step in complete_steps(plan)}
    for entry in ctx.turn.acts.in_state("started", "declined", "done"):
        if entry.what not in complete:
            acts.setdefault(entry.what, entry.sentence(locale))
    return acts


async def tell_stop(manager: Manager, ctx: RunContext) -> None:
    """Says what a plan had come to, and what it did or may have done, before its user stopped it."""
    with suppress(StoreError):
        outputs = await outputs_of(manager.plan, manager.services.documents.memory)
        if text := stop_words(manager.plan, ctx, outputs):
            ctx.emit(Text(channel="answer", text=text))


def _stop_reason(plan: Plan, step: PlanStep | None, words: Sentences) -> str:
    kind = plan.failure_kind
    if kind == "budget":
        return words.plan_over
    if kind == "unreachable":
        return words.plan_unreachable
    if step is None:
        if kind == "no_plan":
            return words.nothing
        return words.plan_infeasible
    task = _quote(step.task)
    tries = plan.replan_count
    if kind in ("infeasible", "no_plan"):
        tries -= 1  # the planner was asked for another way, and there is none
    return (words.plan_failed_again if tries > 0 else words.plan_failed).format(task=task)


def _quote(task: str) -> str:
    return task.rstrip(". ")


def _failure(manager: Manager) -> tuple[list[Outcome], list[AgentCall]]:
    """Returns the call that the plan failed of, with how it ended; that of the planner where no step was to blame."""
    plan = manager.plan
    step = failed_step(plan)
    kind = plan.failure_kind
    detail = plan.failure_reason
    call = AgentCall(call_id=plan.plan_id, agent=manager.settings.planner, query=plan.original_task)
    if step is not None:
        detail = step.failure_reason or detail
        call_id = step.task_id or plan.plan_id
        call = AgentCall(call_id=call_id, agent=manager.settings.executor, query=step.task)
    reason: Reason = "insufficient"
    if plan.status == "needs_key":
        reason = "unavailable"
        detail = "there is no key for the skill service"
    elif kind == "budget" or kind == "uncertain":
        reason = kind
    elif manager.failure:
        reason = manager.failure.reason
    return [call.failed(reason, detail)], [call]
