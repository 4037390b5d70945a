"""The scripted children: each does what its plan says, and leaves a receipt of it in a file."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from kit.conformance.scenario import ChildFault, ChildPlan
from kit.conformance.task import Child, Data, Model

SECRET = "sk-live-4f9a7c21e8"
"""Planted in an error; nobody but a log may hold it."""
RAW = "upstream-7f3a"
"""Planted in every error text."""
REFUSAL = "I'm sorry, but I can't help with that request."
COUNTER_QUESTION = "Which city do you mean, Leeds or York?"
FOREIGN = "MAL-7731"
"""The reference of another principal."""
TICK = 0.05
"""Seconds between two looks of a child that waits."""
_CONNECTION_ERROR = f"connect to 10.20.30.40:5432 failed [{RAW}]"
_ERRORS: dict[ChildFault, BaseException] = {
    "raises": ConnectionError(_CONNECTION_ERROR),
    "tool_raises": ConnectionError(_CONNECTION_ERROR),
    "cancels": asyncio.CancelledError(),
    "breaks_off": ConnectionResetError(f"stream ended after 'Your hotels ref' [{RAW}]"),
    "leaks_secret": RuntimeError(f"401 for postgres://app:{SECRET}@10.20.30.40/main [{RAW}]"),
}
_TEXTS: dict[ChildFault, str] = {
    "says_nothing": "",
    "refuses": REFUSAL,
    "error_as_text": f"Error 503: {_CONNECTION_ERROR}",
    "asks_back": COUNTER_QUESTION,
    "foreign_data": f"Your hotels reference is {FOREIGN}.",
    "never_ends": "Not yet known, look again.",
}


@dataclass(frozen=True)
class Receipts:
    """What happened in a play, in a file that outlives the process; `running` holds the children at work."""

    path: Path
    running: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, child: str, event: str) -> None:
        line = json.dumps({"child": child, "event": event})
        with self.lock, self.path.open("a") as file:
            file.write(f"{line}\n")

    def read(self) -> list[tuple[str, str]]:
        """Pairs of a child and an event, in order."""
        if not self.path.exists():
            return []
        rows = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [(row["child"], row["event"]) for row in rows]


def make_child(plan: ChildPlan, receipts: Receipts, base_url: str, resumes: bool) -> Child:
    """The child of a plan; `base_url` is where its model answers, if it has one."""
    description = f"Knows the user's {plan.name} reference."
    script = _Script(plan, receipts, resumes)
    ask = _function(plan.name, description, script.ask)
    if not plan.has_model:
        return Child(plan.name, description, ask)
    lookup_name = f"{plan.name}_lookup"
    lookup_description = f"Looks up the {plan.name} reference."
    lookup = Child(
        lookup_name,
        lookup_description,
        _function(lookup_name, lookup_description, script.ask),
        data=script.data,
    )
    model = Model(plan.name, base_url)
    return Child(plan.name, description, ask, (lookup,), model)


def _function(
    name: str, description: str, ask: Callable[[str], Awaitable[str]]
) -> Callable[[str], Awaitable[str]]:
    """An async function under this name, for frameworks that read names and docstrings."""

    async def function(request: str) -> str:
        return await ask(request)

    function.__name__ = name
    function.__qualname__ = name
    # Some frameworks want each argument described in the docstring.
    function.__doc__ = f"{description}\n\nArgs:\n    request: What is asked.\n"
    return function


@dataclass(frozen=True)
class _Script:
    """What one child does when it is asked."""

    plan: ChildPlan
    receipts: Receipts
    resumes: bool

    async def ask(self, request: str) -> str:
        """The answer, or the child's fault."""
        name = self.plan.name
        self.receipts.running.append(name)
        self.receipts.add(name, "asked")
        try:
            # A moment as a network takes it, so that the children are at work at the same time.
            await asyncio.sleep(0.02)
            text = await self._do()
        finally:
            self.receipts.running.remove(name)
        self.receipts.add(name, "answered")
        return text

    async def data(self, request: str) -> Data:
        text = await self.ask(request)
        if self.plan.fault == "foreign_data":
            return Data(text, "mallory")
        return Data(text, "alice")

    async def _do(self) -> str:
        plan = self.plan
        if plan.fault != "none":
            self.receipts.add(plan.name, plan.fault)
        match plan.fault:
            case "hangs":
                while True:
                    await asyncio.sleep(TICK)
            case "kills":
                await self._die_once()
            case fault if fault in _ERRORS:
                error = _ERRORS[fault]
                # A new one each time: three children may raise the same.
                raise type(error)(*error.args)
            case fault if fault in _TEXTS:
                return _TEXTS[fault]
            case _:
                pass
        return plan.answer

    async def _die_once(self) -> None:
        """Kills the process as soon as the act is done, and answers after that."""
        if self.resumes:
            return
        while ("payments", "answered") not in self.receipts.read():
            await asyncio.sleep(TICK)
        # Whoever writes down what has ended gets the time to do so.
        await asyncio.sleep(4.0)
        os.kill(os.getpid(), signal.SIGKILL)
