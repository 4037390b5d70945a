"""What the user reads of a plan: an answer composed from the outputs of its steps, or fixed words
for where it stopped."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from kit.planning.loop import Manager
from kit.planning.output_words import Wording, is_ids, size_of, words_of
from kit.planning.plan import OVER, complete_steps, failed_step, made_up_steps
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
    findings = step_words(plan, outputs, sentences)
    asks, results = _as_calls(findings)
    ctx.turn.in_own_words = False
    ctx.turn.record(*_step_answers(plan, findings, manager.settings.executor))
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
        text = scrub("\n\n".join([step.text for step in findings]), ctx)
    return call.answered(f"{text}\n\n{done_words(plan, sentences)}")


@dataclass(frozen=True)
class StepFinding:
    """A complete step in words."""

    step: PlanStep
    words: str
    """What it came to."""
    is_owed: bool
    """Whether the answer has to tell it: the number of what a later step chose from is not what was asked for."""
    text: str
    """The same under what it was to do, in markdown."""


def step_words(plan: Plan, outputs: Mapping[int, Any], sentences: Sentences) -> list[StepFinding]:
    """Returns what each complete step of a plan came to. Ids that a later step works on are told as their number."""
    with_ids = re.search(r"\bids?\b", plan.original_task.lower()) is not None
    wording = Wording(sentences, with_ids)
    read_by_later: set[int] = set()
    for step in plan.steps:
        read_by_later.update(step.inputs)
    findings: list[StepFinding] = []
    for step in complete_steps(plan):
        number = step.step_index
        output = outputs.get(number)
        is_pool = number in read_by_later and is_ids(output)
        if output is None:
            words = sentences.plan_gone
        elif is_pool:
            words = f"{size_of(output, sentences)}."
        else:
            words = words_of(output, wording)
        text = f"**{number}. {_quote(step.task)}:** {words}"
        findings.append(StepFinding(step, words, not is_pool, text))
    return findings


def _as_calls(findings: Sequence[StepFinding]) -> tuple[list[ToolCall], list[ToolMessage]]:
    """Returns the steps as the model that answers reads them: as results of what it asked for."""
    asks: list[ToolCall] = []
    results: list[ToolMessage] = []
    for finding in findings:
        call_id = finding.step.task_id or ""
        name = f"ask_step_{finding.step.step_index}"
        asks.append(ToolCall(name=name, args={"query": finding.step.task}, id=call_id))
        results.append(tool_text(finding.text, call_id))
    return asks, results


def _step_answers(
    plan: Plan, findings: Sequence[StepFinding], executor: str
) -> tuple[list[Answer], list[AgentCall]]:
    """Returns what the steps say as answers, which no composition may lose, and the request of each."""
    answers: list[Answer] = []
    calls: list[AgentCall] = []
    for finding in findings:
        if not finding.is_owed:
            continue
        # A step stands for what the steps before it were asked too: it was done with what they gave.
        query = "; ".join([*_earlier_tasks(finding.step, plan.steps), finding.step.task])
        call = AgentCall(call_id=finding.step.task_id or "", agent=executor, query=query)
        answers.append(call.answered(finding.words))
        calls.append(call)
    return answers, calls


def _earlier_tasks(step: PlanStep, steps: Sequence[PlanStep]) -> list[str]:
    """Returns what the steps were to do whose outputs one works on, and those that these work on, in order."""
    inputs = {step.step_index: step.inputs for step in steps}
    earlier: set[int] = set()
    queue = list(step.inputs)
    while queue:
        number = queue.pop()
        # a plan that was not verified may go round in a circle
        if number not in earlier:
            earlier.add(number)
            queue += inputs.get(number, ())
    return [other.task for other in steps if other.step_index in earlier]


def done_words(plan: Plan, words: Sentences) -> str:
    """Says in how many steps a plan was done, and which failed on the way: no model may pass over that."""
    count = len(plan.steps)
    sentence = words.plan_done_one if count == 1 else words.plan_done.format(count=count)
    failed = dict.fromkeys(str(replan.failed_step) for replan in plan.replan_history)
    if not failed:
        return sentence
    sentence += f" {words.plan_again.format(steps=', '.join(failed))}"
    return sentence + _made_up_words(plan, words)


def _made_up_words(plan: Plan, words: Sentences) -> str:
    """Says which steps answered without looking anything up; empty where none did."""
    made_up = made_up_steps(plan)
    if not made_up:
        return ""
    return f" {words.plan_made_up.format(steps=', '.join(made_up))}"


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
        reason += _made_up_words(plan, words)
        parts.insert(0, reason)
    if not parts and not complete:
        return ""
    lead = "\n".join(parts)
    if complete:
        parts.append(words.plan_steps)
        for finding in step_words(plan, outputs, words):
            heading = f"**{finding.step.step_index}. {_quote(finding.step.task)}**"
            # What a service put into its result is read by no guard here.
            parts.append(heading if leaks(finding.text, ctx) else finding.text)
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
