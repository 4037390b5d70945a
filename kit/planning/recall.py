"""What earlier plans of a user were answered with, for the planner of a similar task."""

import logging
from typing import Any, cast

from kit.core.documents.document import Plan
from kit.core.errors import EmbedderError, MemoryLockError, StoreError
from kit.planning.services import PlanServices
from kit.tools.embedder import cosine
from kit.tools.recall import find_memories, summary_of
from kit.tools.task_memory import MemoryConfig, Task

ANSWER = "answer"
"""What the tasks are called, after their plan's id, that leave an answer."""
SHAPE = {"task": "string", "answer": "string", "at": "number"}
SIMILAR = 0.3
"""Cosine from which an earlier task is like this one: tasks of another subject stay below 0.2."""
MOST_CHARACTERS = 1_000
"""Characters of one answer that a planner reads."""
log = logging.getLogger("kit.planning")


async def remember_answer(services: PlanServices, plan: Plan, agent: str, text: str) -> None:
    """Keeps what a plan was answered with for its user. A store that fails keeps the answer from nobody."""
    task = Task(
        plan.owner,
        plan.session_id,
        f"{plan.plan_id}.{ANSWER}",
        agent,
        plan.plan_id,
        words=plan.original_task,
    )
    answer = {"task": plan.original_task, "answer": text, "at": services.clock()}
    try:
        await services.memory.keep(task, task.id, answer, SHAPE, MemoryConfig(scope="user"))
    except (MemoryLockError, StoreError) as error:
        log.warning("the answer of %s is not kept for later plans: %s", plan.plan_id, error)


async def session_summary(services: PlanServices, plan: Plan, most: int) -> str | None:
    """Returns what was said in the plan's session before the conversation that its planner reads, where it is like the
    task; None where nothing is."""
    if not most:
        return None
    memories = services.documents.memory
    embedder = services.memory.embedder
    return await summary_of(memories, embedder, plan.owner, plan.session_id, plan.original_task)


async def earlier_answers(services: PlanServices, plan: Plan, most: int) -> list[dict[str, Any]]:
    """Returns the tasks of the plan's user that were like this one, and what each was answered with, nearest first."""
    if not most:
        return []
    embedder = services.memory.embedder
    memories = await find_memories(
        services.documents.memory, embedder, plan.owner, "user", plan.original_task, most
    )
    answers: list[dict[str, Any]] = []
    try:
        here = await embedder.embed(plan.original_task)
        for memory in memories:
            if not (memory.task_id or "").endswith(f".{ANSWER}"):
                continue
            value = cast("dict[str, Any]", memory.value)
            if cosine(here, await embedder.embed(value["task"])) >= SIMILAR:
                answer = value["answer"][:MOST_CHARACTERS]
                answers.append({"task": value["task"], "answer": answer})
    except EmbedderError as error:
        log.warning("%s is planned without earlier answers: %s", plan.plan_id, error)
    return answers
