"""Systems that are right or wrong in one way each; the player imports this file in a process of its own."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx

from kit.conformance.task import Task

PACKAGES = ("httpx",)
_left_behind: list[asyncio.Task[str]] = []


async def _ask_model(task: Task) -> None:
    """Makes the orchestrator's model call its children; what it composes is not used here."""
    functions = [{"type": "function", "function": {"name": child.name}} for child in task.children]
    request = {
        "model": task.model.name,
        "messages": [{"role": "user", "content": task.message}],
        "tools": functions,
    }
    async with httpx.AsyncClient() as client:
        await client.post(f"{task.model.base_url}/chat/completions", json=request)


async def _outcomes(task: Task) -> dict[str, str]:
    """Child -> its answer, or nothing where it gave none."""
    await _ask_model(task)
    asks = [child.ask("What is it?") for child in task.children]
    results = await asyncio.gather(*asks, return_exceptions=True)
    outcomes: dict[str, str] = {}
    for child, result in zip(task.children, results, strict=True):
        outcomes[child.name] = result if isinstance(result, str) else ""
    return outcomes


def _words(outcomes: dict[str, str]) -> list[str]:
    return [text or f"I have no answer about {name}." for name, text in outcomes.items()]


async def right(task: Task) -> str:
    """Says what there is, and what is missing."""
    return "\n".join(_words(await _outcomes(task)))


async def silent(task: Task) -> str:
    """Says what there is, and not what is missing."""
    return "\n".join((await _outcomes(task)).values())


async def leaving(task: Task) -> str:
    """Answers while a child is still at work."""
    await _ask_model(task)
    for child in task.children:
        _left_behind.append(asyncio.ensure_future(_ask(child.ask)))
    await asyncio.sleep(0.3)
    return "I have no answer about flights.\nI have no answer about hotels.\nNone about trains."


async def _ask(ask: Callable[[str], Awaitable[str]]) -> str:
    return await ask("What is it?")


async def spending(task: Task) -> str:
    """Asks the model again and again."""
    for _ in range(20):
        await _ask_model(task)
    return await right(task)


async def constant(task: Task) -> str:
    """Asks nobody."""
    return "Your flights reference is known."
