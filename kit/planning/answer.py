"""What the user reads of a plan: an answer composed from the outputs of its steps, or fixed words for where it stopped."""

import json
from collections.abc import Iterator
from typing import Any, cast

from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.planning.loop import OVER_BUDGET, UNCERTAIN, Manager
from kit.planning.plan import complete_steps, failed_step
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.answer.acknowledge import acknowledge
from kit.runtime.context import RunContext
from kit.stores.documents.document import Plan

MOST = 6_000
"""Characters of one step's output that the manager's model reads; of more it reads the beginning."""
SYNTHESIS = "The plan for this request is done. Answer it from what its steps returned, and from nothing else."


async def answer_of(manager: Manager, lead: LLMAgent, call: AgentCall, ctx: RunContext) -> Outcome:
    """Returns the answer to a plan that has ended; one that failed says so, and says what is done."""
    plan, executor = manager.plan, manager.settings.executor
    steps = complete_steps(plan)
    calls = [AgentCall(call_id=step.task_id or "", agent=executor, query=step.task, fields={}) for step in steps]
    if plan.status == "failed":
        ctx.turn.record(*_failure(manager, executor))
        return Answer(call_id=call.call_id, agent=call.agent, text=stop_words(manager, ctx))
    values = [await manager.value(step) for step in steps]
    texts = [words_of(value) for value in values]
    answers = [Answer(call_id=ask.call_id, agent=executor, text=text) for ask, text in zip(calls, texts, strict=True)]
    ctx.turn.record(answers, calls)
    thread = lead.open(call, ctx)
    thread[0] = SystemMessage(f"{thread[0].text}\n\n{SYNTHESIS}")
    asks = [ToolCall(name=f"ask_{executor}", args={"query": ask.query}, id=ask.call_id) for ask in calls]
    results = [ToolMessage(text, tool_call_id=ask.call_id) for ask, text in zip(calls, texts, strict=True)]
    thread += [AIMessage("", tool_calls=asks), *results]
    text = (await lead.compose(thread, call, ctx, live=False, news=len(results))).text

    async def again(notice: str) -> str:
        longer = [SystemMessage(f"{thread[0].text}\n\n{notice}"), *thread[1:]]
        return (await lead.compose(longer, call, ctx, live=False, news=1)).text

    text = await acknowledge(text, ctx, again, clean=True, seconds=lead.time_budget)
    return Answer(call_id=call.call_id, agent=call.agent, text=text)


def stop_words(manager: Manager, ctx: RunContext) -> str:
    """Says in the session's language why a plan stopped and what of it is done; nothing here was worded by a model."""
    plan, words = manager.plan, ctx.turn.locale.sentences
    step = failed_step(plan)
    if _reason(plan) == OVER_BUDGET:
        first = words.plan_over
    elif step is None:
        first = words.plan_infeasible
    else:
        first = (words.plan_uncertain if step.status == UNCERTAIN else words.plan_failed).format(task=_quote(step.task))
    steps = [_quote(step.task) for step in complete_steps(plan)]
    return f"{first} {words.plan_steps.format(steps='; '.join(steps)) if steps else words.plan_no_steps}"


def words_of(value: Any) -> str:
    """Returns the output of a step in lines that a model reads, an item a line, the beginning of a long one."""
    lines = list(_lines(value))
    text, room = list[str](), MOST
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            text.append(f"… and {len(lines) - len(text):,} more lines")
            break
        text.append(line)
    return "\n".join(text)


def _lines(value: Any, name: str = "") -> Iterator[str]:
    label = f"{name.replace('_', ' ')}: " if name else ""
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            plain = [
                f"{key.replace('_', ' ')} {_word(part)}" for key, part in fields.items() if not isinstance(part, dict | list)
            ]
            if plain:
                yield f"{label}{', '.join(plain)}."
            for key, part in fields.items():
                if isinstance(part, dict | list):
                    yield from _lines(part, key)
        case list():
            items = cast("list[Any]", value)
            yield f"{label}{len(items):,} {'item' if len(items) == 1 else 'items'}."
            for item in items:
                yield from _lines(item)
        case _:
            yield f"{label}{_word(value)}."


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _quote(task: str) -> str:
    return task.rstrip(". ")


def _failure(manager: Manager, executor: str) -> tuple[list[Outcome], list[AgentCall]]:
    """Returns the call that the plan failed of, with how it ended; that of the planner where no step was to blame."""
    plan = manager.plan
    step, reason = failed_step(plan), _reason(plan)
    agent, call_id, task = manager.settings.planner, plan.plan_id, plan.original_task
    if step is not None:
        agent, call_id, task = executor, step.task_id or plan.plan_id, step.task
    outcome = Failure(
        call_id=call_id,
        agent=agent,
        axis="invocation",
        reason="budget" if reason == OVER_BUDGET else "insufficient",
        detail=(step.failure_reason if step else None) or reason,
    )
    return [outcome], [AgentCall(call_id=call_id, agent=agent, query=task, fields={})]


def _reason(plan: Plan) -> str:
    return str(cast("dict[str, Any]", plan.failure or {}).get("reason", ""))
