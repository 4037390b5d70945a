"""write_memory and read_memory: what a task leaves for the next, held to its contract before the
write, locked until read."""

import asyncio
import json
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from kit.core.context import InheritedContext, Principal
from kit.core.documents.document import AgentEvent, Memory
from kit.core.errors import EmbedderError, MemoryLockError, ShapeError, StorageSchemaError
from kit.core.schema.json_value import is_mapping
from kit.core.schema.shape import Shape, schema_of, shape_of
from kit.core.schema.validator import validator
from kit.core.value import Value
from kit.stores.bus.bus import Bus, BusError, LocalBus
from kit.stores.documents.protocol import Documents
from kit.tools.embedder import Embedder, WordVectors
from kit.tools.enricher import read_config, structured
from kit.tools.tool import UNAVAILABLE, ConfiguredTool, Toolbox, ToolResult, tool_context
from kit.tools.tool_factory import ToolSetup, tool_factory

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

log = logging.getLogger("kit.memory")
WRITE = "write_memory"
READ = "read_memory"
TIMEOUT = "memory.lock_timeout"
"""Event of a write that was given up, because another task held its key for all of WAIT."""
WAIT = 5.0
"""Seconds that a write waits for a lock."""
PAUSE = 0.5
"""Seconds after which it tries again, where the bus says nothing."""
HOLD = 60.0
"""Seconds after which a lock ends that no reader gave back."""
MOST_WORDS = 20_000
"""Characters of a value that a memory is found by."""
KEY = {"type": "string", "description": "A short name for it, such as outlet_ids."}
DATA = {"description": "What to keep, as JSON of exactly the shape that is asked for."}
RETURN_SPEC = {
    "type": "object",
    "description": 'What the data has to look like, such as {"shape": {"outlet_ids": "array<string>"}}.',
    "properties": {"shape": {"type": "object"}, "reason": {"type": "string"}},
    "required": ["shape"],
}


class MemoryConfig(Value):
    """What a card may set for write_memory."""

    shape: str | dict[str, Any] | None = None
    """The contract, in the notation of kit.core.schema.shape; None: the model names it with each call."""
    scope: Literal["session", "user"] = "session"
    """Whether it is kept for this task of the session, or for all tasks of the user."""
    seconds: float | None = None
    """How long it is kept; None for good."""


class Task(NamedTuple):
    """For whom and in what a tool works."""

    principal: Principal
    session_id: str
    id: str
    agent: str
    plan_id: str | None = None
    step_index: int | None = None
    words: str = ""
    """What the step is to do; empty outside of plans."""

    @property
    def lineage(self) -> dict[str, Any]:
        """Whose it is, as documents and events name it."""
        return {
            "tenant_id": self.principal.tenant_id,
            "user_id": self.principal.user_id,
            "session_id": self.session_id,
            "plan_id": self.plan_id,
            "task_id": self.id,
        }


_task: ContextVar[Task | None] = ContextVar("task", default=None)


@contextmanager
def within_task(task: Task) -> Generator[None]:
    """Names the task of all agents that work inside: a step of a plan, which keeps its files and
    keys when it is resumed."""
    token = _task.set(task)
    try:
        yield
    finally:
        _task.reset(token)


def current_task() -> Task:
    """The task of the tool call now running: one dispatch of an agent, or the step of a plan that it works on."""
    context = tool_context()
    return task_of(context.inherited, context.turn_id, context.agent, context.path)


def task_of(inherited: InheritedContext, turn_id: str, agent: str, path: str) -> Task:
    """The task of an agent that works at a path of a turn, or the step of a plan that it works on."""
    return _task.get() or Task(
        inherited.principal, inherited.episode_id, f"{turn_id}.{path or agent}", agent
    )


def memory_key(task: Task, label: str, scope: Literal["session", "user"]) -> str:
    """The whole key of a label, `tenant:session:task:label` or `tenant:user:user:label`; no two
    tasks can make the same."""
    if scope == "user":
        owner = f"user:{quote(task.principal.user_id, safe='')}"
    else:
        # A session may be called user: its first letter is then written as its code.
        session = "%75ser" if task.session_id == "user" else quote(task.session_id, safe="")
        owner = f"{session}:{quote(task.id, safe='')}"
    return f"{quote(task.principal.tenant_id, safe='')}:{owner}:{quote(label, safe='')}"


def memory_stream(principal: Principal) -> str:
    """The stream of the bus that says which keys of a tenant were written, and which were read (decisions 22)."""
    return f"memory:{quote(principal.tenant_id, safe='')}"


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """Writes under keys of its own making, after a look at the contract; what it does is in the log
    of events, and on the bus."""

    documents: Documents
    clock: Callable[[], float] = time.time
    bus: Bus = field(default_factory=LocalBus)
    embedder: Embedder = field(default_factory=WordVectors)
    seconds: float | None = None
    """How long a memory is kept that names no time of its own; None for good."""

    async def write(
        self, task: Task, label: str, data: Any, shape: Shape, config: MemoryConfig | None = None
    ) -> Mapping[str, Any]:
        """Returns `{status: written, key}`, or `{status: contract_violation, expected, actual}`
        when nothing was written.

        Raises ShapeError, StorageSchemaError, and MemoryLockError where another task has held the key for all of WAIT.
        """
        config = config or MemoryConfig()
        if not label:
            raise StorageSchemaError("a memory needs a key: give it a short name")
        if validator(schema_of(shape)).wrong(data) is not None:
            actual = shape_of(data)
            details = {
                "expected_shape": shape,
                "actual_shape": actual,
                "step_index": task.step_index,
            }
            await self._report(task, "contract_violation", details)
            return {"status": "contract_violation", "expected": shape, "actual": actual}
        key = memory_key(task, label, config.scope)
        memory = await self._memory(task, key, data, config)
        began = asyncio.get_running_loop().time()
        waiting_seconds = 0.0
        while True:
            try:
                await self.documents.memory.write(memory)
                break
            except MemoryLockError:
                if waiting_seconds >= WAIT:
                    lock_wait_ms = round(waiting_seconds * 1000)
                    await self._report(task, TIMEOUT, {"key": key}, lock_wait_ms)
                    raise
            await self._hear(task.principal, min(PAUSE, WAIT - waiting_seconds))
            waiting_seconds = asyncio.get_running_loop().time() - began
        await self._say(task.principal, "memory.upsert", key)
        details = {"key": key, "size_bytes": len(json.dumps(data)), "validated": True}
        await self._report(
            task, "memory.written", details, lock_wait_ms=round(waiting_seconds * 1000)
        )
        return {"status": "written", "key": key}

    async def keep(
        self, task: Task, label: str, data: Any, shape: Shape, config: MemoryConfig | None = None
    ) -> None:
        """Writes what no step waits for: its key is free at once. Raises what `write` raises."""
        report = await self.write(task, label, data, shape, config)
        await self._free(task.principal, report["key"], task.id)

    async def read(self, principal: Principal, key: str) -> Memory | None:
        """The memory under a whole key, its lock as it is; None where there is none for this principal."""
        return await self.documents.memory.read(principal, key)

    async def confirm(self, principal: Principal, memory: Memory) -> None:
        """Says that a memory has been read: its key is free for the next write, and whoever waits for it hears so."""
        if memory.locked_by:
            await self._free(principal, memory.key, memory.locked_by)

    async def _free(self, principal: Principal, key: str, task_id: str) -> None:
        await self.documents.memory.unlock(principal, key, task_id)
        await self._say(principal, "memory.confirmed", key)

    async def _say(self, principal: Principal, event: str, key: str) -> None:
        try:
            await self.bus.publish(memory_stream(principal), {"event": event, "key": key})
        except BusError as error:
            # Whoever waits looks again by itself.
            log.warning("%s of %s was not told: %s", event, key, error)

    async def _hear(self, principal: Principal, seconds: float) -> None:
        """Waits until the bus says something of the tenant's memories, or so long."""
        stream = memory_stream(principal)
        try:
            await self.bus.read(stream, await self.bus.last(stream), seconds)
        except BusError:
            await asyncio.sleep(seconds)

    async def _memory(self, task: Task, key: str, data: Any, config: MemoryConfig) -> Memory:
        now = self.clock()
        seconds = config.seconds or self.seconds
        text = f"{task.words}\n{json.dumps(data, ensure_ascii=False)}"[:MOST_WORDS]
        try:
            embedding = await self.embedder.embed(text)
        except EmbedderError as error:
            # By its words it is found all the same.
            log.warning("%s has no vector: %s", key, error)
            embedding = None
        return Memory(
            **task.lineage,
            id=key,
            step_index=task.step_index,
            scope=config.scope,
            key=key,
            source=task.agent,
            created_at=now,
            ttl_at=None if seconds is None else now + seconds,
            locked_by=task.id,
            lock_expires=now + HOLD,
            value=data,
            # By its words and by their meaning it is found again (kit/tools/recall.py).
            text=text,
            embedding=embedding,
            embedder=self.embedder.name if embedding else None,
        )

    async def _report(
        self, task: Task, kind: str, payload: Mapping[str, Any], lock_wait_ms: int | None = None
    ) -> None:
        event = AgentEvent(
            **task.lineage,
            event_id=uuid.uuid4().hex,
            agent=task.agent,
            event_type=kind,
            payload=payload,
            lock_wait_ms=lock_wait_ms,
            ts=self.clock(),
        )
        await self.documents.events.append(event)


def write_tool(memory: TaskMemory, config: MemoryConfig) -> "BaseTool":
    """write_memory, for a card. Raises ShapeError where the card's shape is none."""
    if config.shape is not None:
        schema_of(config.shape)

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        # The card's contract comes first: a model that names another one cannot loosen it.
        shape = config.shape
        if shape is None:
            shape = _shape_in(arguments.get("return_spec"))
        key = arguments.get("key")
        return await write_data(memory, current_task(), key, arguments.get("data"), shape, config)

    properties: dict[str, Any] = {"key": KEY, "data": DATA}
    if config.shape is None:
        properties["return_spec"] = RETURN_SPEC
    description = "Keep a result for a later step. Returns the key it can be read by."
    return structured(WRITE, description, properties, tuple(properties), call)


async def write_data(
    memory: TaskMemory,
    task: Task,
    label: Any,
    data: Any,
    shape: Shape,
    config: MemoryConfig | None = None,
) -> tuple[str, ToolResult]:
    """Writes what a model hands in. What does not fit, and a key that stays locked, are told it."""
    try:
        report = await memory.write(task, str(label or ""), _data(data), shape, config)
    except MemoryLockError as error:
        return _result(UNAVAILABLE, fault="unavailable", detail=f"MemoryLockError: {error}")
    except (ShapeError, StorageSchemaError) as error:
        return _result(str(error), fault="bad_arguments", detail=str(error))
    text = json.dumps(report)
    if report["status"] == "contract_violation":
        return _result(text, fault="bad_arguments", detail=text)
    return _result(text)


def read_tool(memory: TaskMemory) -> "BaseTool":
    """read_memory, for a card; reading confirms."""

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        principal = tool_context().inherited.principal
        item = await memory.read(principal, str(arguments.get("key", "")))
        if item is None:
            return _result("Nothing is kept under this key.")
        await memory.confirm(principal, item)
        return _result(json.dumps(item.value, ensure_ascii=False))

    key = {"type": "string", "description": "The whole key, as write_memory returned it."}
    return structured(READ, "Read what a step has kept.", {"key": key}, ("key",), call)


def _data(value: Any) -> Any:
    """Reads JSON where a model gave it as a text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _shape_in(spec: Any) -> Any:
    """Returns the shape in a return_spec; a model may give it alone."""
    return spec.get("shape", spec) if is_mapping(spec) else spec


def _result(text: str, **fields: Any) -> tuple[str, ToolResult]:
    return text, ToolResult(text=text, **fields)


@tool_factory(WRITE, READ)
@asynccontextmanager
async def TOOLS(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
    """What deck.yaml names as `kit.tools.task_memory:TOOLS`; a card sets MemoryConfig under `tool_config`."""
    memory = TaskMemory(setup.documents(), setup.clock, setup.bus, setup.embedder)
    yield {
        WRITE: ConfiguredTool(
            lambda config: write_tool(memory, read_config(WRITE, config, MemoryConfig))
        ),
        READ: read_tool(memory),
    }
