"""What the user reads of a plan: an answer composed from the outputs of its steps, or fixed words
for where it stopped."""

import json
from collections.abc import Iterator
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from kit.compose.locale import Sentences
from kit.core.bodies.speech import Acknowledged
from kit.core.bodies.turn import PlanEnded
from kit.core.documents.document import Plan, PlanStep
from kit.core.outcome import AgentCall, Answer, Failure, Outcome, Reason
from kit.models.message import system_text, tool_text
from kit.planning.loop import Manager
from kit.planning.plan import complete_steps, failed_step
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.answer.acknowledge import acknowledge
from kit.runtime.answer.owed import owed_by
from kit.runtime.context import RunContext

MOST_CHARACTERS = 6_000
"""Characters of one step's output that the manager's model reads; of more it reads the beginning."""
TITLES = ("name", "title")
"""Fields that name a thing: they come first and without their own name."""
SYNTHESIS = "The plan for this request is done. Answer it from what its steps returned, and from nothing else."


async def answer_of(manager: Manager, lead: LLMAgent, call: AgentCall, ctx: RunContext) -> Answer:
    """Returns the answer to a plan that has ended; one that failed says so, and says what is done.

    One that waits for a key says that.
    """
    plan = manager.plan
    executor = manager.settings.executor
    if plan.status == "needs_key":
        ctx.turn.record(*_failure(manager, executor))
        ctx.emit(Acknowledged(path="rescued", owed=owed_by(ctx.turn).agents))
        text = ctx.turn.locale.sentences.plan_needs_key
        return Answer(call_id=call.call_id, agent=call.agent, text=text)
    status = "failed" if plan.status == "failed" else "complete"
    ctx.emit(PlanEnded(plan_id=plan.plan_id, status=status, failure=plan.failure))
    if plan.status == "failed":
        # In fixed words: a model would explain away what it does not know.
        ctx.turn.record(*_failure(manager, executor))
        ctx.emit(Acknowledged(path="rescued", owed=owed_by(ctx.turn).agents))
        return Answer(call_id=call.call_id, agent=call.agent, text=stop_words(manager, ctx))
    inputs = {number for step in plan.steps for number in step.inputs}
    answers: list[Answer] = []
    calls: list[AgentCall] = []
    asks: list[ToolCall] = []
    results: list[ToolMessage] = []
    texts: list[str] = []
    for step in complete_steps(plan):
        # The output of any other step stands in that of the step which used it.
        if step.step_index in inputs:
            continue
        call_id = step.task_id or ""
        text = words_of(await manager.value(step))
        answers.append(Answer(call_id=call_id, agent=executor, text=text))
        calls.append(AgentCall(call_id=call_id, agent=executor, query=step.task, fields={}))
        name = f"ask_step_{step.step_index}"
        asks.append(ToolCall(name=name, args={"query": step.task}, id=call_id))
        results.append(tool_text(text, call_id))
        texts.append(text)
    ctx.turn.in_own_words = False
    ctx.turn.record(answers, calls)
    thread = lead.open(call, ctx)
    thread[0] = system_text(f"{thread[0].text}\n\n{SYNTHESIS}")
    thread += [AIMessage("", tool_calls=asks), *results]
    text = (await lead.compose(thread, call, ctx, live=False, news=len(results))).text

    async def again(notice: str) -> str:
        longer = [system_text(f"{thread[0].text}\n\n{notice}"), *thread[1:]]
        return (await lead.compose(longer, call, ctx, live=False, news=1)).text

    owes_nothing = not ctx.turn.left_out().count
    text = await acknowledge(
        text,
        ctx,
        again,
        clean=owes_nothing,
        sources=lambda: "\n".join([call.query, *texts]),
        seconds=lead.time_budget,
    )
    return Answer(call_id=call.call_id, agent=call.agent, text=text)


def stop_words(manager: Manager, ctx: RunContext) -> str:
    """Says in the session's language why a plan stopped and what of it is done; nothing here was worded by a model."""
    plan = manager.plan
    words = ctx.turn.locale.sentences
    step = failed_step(plan)
    steps = [_quote(done.task) for done in complete_steps(plan)]
    sentences = [_stop_reason(plan, step, words)]
    if steps:
        sentences.append(words.plan_steps.format(steps="; ".join(steps)))
    elif plan.steps and not (step and step.status == "uncertain"):
        # Of a step that may have acted nobody can say that nothing is done.
        sentences.append(words.plan_no_steps)
    return " ".join(sentences)


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
    if kind == "uncertain":
        return words.plan_uncertain.format(task=task)
    tries = plan.replan_count
    if kind in ("infeasible", "no_plan"):
        tries -= 1  # the planner was asked for another way, and there is none
    return (words.plan_failed_again if tries > 0 else words.plan_failed).format(task=task)


def words_of(value: Any) -> str:
    """Returns the output of a step in lines that a model reads, an item a line, the beginning of a long one."""
    lines = list(_lines(value))
    text: list[str] = []
    room = MOST_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            # Said, so that nobody takes the beginning for all of it.
            text.append(f"… and {len(lines) - len(text):,} more lines")
            break
        text.append(line)
    return "\n".join(text)


def _lines(value: Any, name: str = "") -> Iterator[str]:
    """Yields an object as one line, what is inside it on lines of its own; a list of single values as one line."""
    label = ""
    if name:
        label = f"{_plain(name)}: "
    if isinstance(value, dict):
        yield from _object_lines(cast("dict[str, Any]", value), name, label)
        return
    if not isinstance(value, list):
        yield f"{label}{_word(value)}."
        return
    items = cast("list[Any]", value)
    key = _only_field(items)
    if key is not None:
        yield from _lines([item[key] for item in items], key)
    elif any(isinstance(item, dict | list) for item in items):
        for item in items:
            yield from _lines(item)
    else:
        words = ", ".join(_word(item) for item in items)
        yield f"{label}{words or 'none'}."


def _object_lines(fields: dict[str, Any], name: str, label: str) -> Iterator[str]:
    title = ""
    words: list[str] = []
    nested: list[str] = []
    for key, value in fields.items():
        if isinstance(value, dict | list):
            nested.append(key)
        elif key in TITLES and value and not title:
            title = str(value)
        elif not (title and key in TITLES and value == title):
            words.append(_field(key, value))
    if len(nested) < len(fields):
        head = label.removesuffix(": ")
        if title:
            head = f"{_plain(name)} {title}".strip()
        parts = [part for part in (head, ", ".join(words)) if part]
        yield f"{': '.join(parts)}."
    for key in nested:
        yield from _lines(fields[key], key)


def _only_field(items: list[Any]) -> str | None:
    """Returns the one field that each of these objects has; None where they are no such objects."""
    field: str | None = None
    for item in items:
        names = list(cast("dict[str, Any]", item)) if isinstance(item, dict) else []
        if len(names) != 1 or field not in (None, names[0]):
            return None
        field = names[0]
    return field


def _field(key: str, value: Any) -> str:
    if isinstance(value, bool):
        if value:
            return _plain(key)
        return f"not {_plain(key)}"
    if key.endswith("_cents") and isinstance(value, int):
        return f"{_plain(key.removesuffix('_cents'))} ${value / 100:,.2f}"
    return f"{_plain(key)} {_word(value)}"


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value.rstrip(". ")
    return json.dumps(value)


def _quote(task: str) -> str:
    return task.rstrip(". ")


def _failure(manager: Manager, executor: str) -> tuple[list[Outcome], list[AgentCall]]:
    """Returns the call that the plan failed of, with how it ended; that of the planner where no step was to blame."""
    plan = manager.plan
    step = failed_step(plan)
    kind = plan.failure_kind
    agent = manager.settings.planner
    call_id = plan.plan_id
    task = plan.original_task
    reason: Reason = "insufficient"
    if plan.status == "needs_key":
        reason = "unavailable"
    elif kind == "budget" or kind == "uncertain":
        reason = kind
    elif manager.failure:
        reason = manager.failure.reason
    if step is not None:
        agent = executor
        call_id = step.task_id or plan.plan_id
        task = step.task
    outcome = Failure(
        call_id=call_id,
        agent=agent,
        axis="invocation",
        reason=reason,
        detail=_failure_detail(plan, step),
    )
    return [outcome], [AgentCall(call_id=call_id, agent=agent, query=task, fields={})]


def _failure_detail(plan: Plan, step: PlanStep | None) -> str:
    if plan.status == "needs_key":
        return "the request brought no key for the skill service"
    if step is not None and step.failure_reason:
        return step.failure_reason
    return plan.failure_reason
