"""Sub-agents asked side by side, some of which fail: what their caller holds, by plain asyncio and
by the kit.

The siblings are simulated: each takes its seconds, then answers or raises. Compared in virtual
time, so that figures are exact.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage

from kit.core.card import AgentCard, Policy
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.context import RunContext
from kit.runtime.handle import Host
from kit.runtime.team import Team, bind
from kit.runtime.turn import Reply, Turn, run_turn
from studies.study_deck import ORCHESTRATOR, direct_context, kept_by, study_deck, study_session

Way = Literal["gather", "TaskGroup", "gather, exceptions returned"]


@dataclass(frozen=True)
class Sibling:
    """A sub-agent that takes its time, then answers or raises."""

    id: str
    seconds: float
    error: str = ""
    """Raised in place of an answer."""
    budget: float | None = None
    """Seconds its card allows."""

    @property
    def card(self) -> AgentCard:
        policy = Policy(time_budget_ms=int(self.budget * 1000) if self.budget else None)
        return AgentCard(
            id=self.id, description=f"Answers about {self.id}.", model="offline", policy=policy
        )

    @property
    def model(self) -> ScriptedModel:
        error = RuntimeError(self.error) if self.error else None
        return ScriptedModel(
            lambda _: Line(f"The part of {self.id}.", delay=self.seconds, error=error)
        )

    async def work(self) -> str:
        """Does the same without the kit."""
        await asyncio.sleep(self.seconds)
        if self.error:
            raise RuntimeError(self.error)
        return self.id


class Round(NamedTuple):
    """What a caller holds once it can go on; a list of them is a tidy frame."""

    way: str
    seconds: float
    answers: tuple[str, ...]
    """Siblings whose answers it holds."""
    exception: str
    """What it was raised, as class and message; empty for nothing."""
    failures: tuple[str, ...]
    """Siblings of whose failure it holds a value."""
    running: tuple[str, ...]
    """Siblings that are still at work, with nobody to answer to."""


def team(siblings: Sequence[Sibling], cap: int = 8, think: float = 0.0) -> Team:
    """Binds an orchestrator over these; its scripted model takes `think` seconds to ask all of
    them, and again to compose."""
    asks = [
        (f"ask_{s.id}", {"query": f"everything about {s.id}", "intent_count": len(siblings)})
        for s in siblings
    ]

    def lead(messages: list[BaseMessage]) -> Line:
        results = [m for m in messages if isinstance(m, ToolMessage)]
        good = " ".join(str(m.content) for m in results if m.status == "success")
        return (
            Line(good, delay=think)
            if results
            else Line("Let me ask around.", calls=asks, delay=think)
        )

    models: dict[str, str | BaseChatModel] = {sibling.id: sibling.model for sibling in siblings}
    return bind(
        study_deck([s.card for s in siblings], cap=cap),
        {ORCHESTRATOR: ScriptedModel(lead), **models},
        {},
    )


def caller_context(siblings: Sequence[Sibling], cap: int = 8) -> RunContext:
    """Returns the context of a caller of these with no turn around it: for calling `dispatch` and
    `fan_out` directly."""
    return direct_context(team(siblings, cap), [sibling.id for sibling in siblings], cap)


def start(
    siblings: Sequence[Sibling], cap: int = 8, think: float = 0.0, keep: Host | None = None
) -> Turn:
    """Starts a turn that asks all of them, on the running loop; it is stored where `keep` stores
    its turns, None nowhere."""
    session = study_session(f"siblings-{uuid.uuid4().hex}")
    return run_turn("Everything, please.", session, kept_by(keep, team(siblings, cap, think)))


async def exact(siblings: Sequence[Sibling], cap: int = 8, think: float = 0.0) -> Reply:
    """Plays that turn in virtual time."""
    return await asyncio.to_thread(run_virtual, _turn(siblings, cap, think))


async def compare(siblings: Sequence[Sibling]) -> list[Round]:
    """Asks the same siblings by asyncio as it is usually written, three ways, and last by the kit; in virtual time."""
    rounds = [await asyncio.to_thread(run_virtual, _plain(way, siblings)) for way in get_args(Way)]
    reply = await exact(siblings)
    answers = tuple(outcome.agent for outcome in reply.outcomes if outcome.kind == "answer")
    failures = tuple(outcome.agent for outcome in reply.outcomes if outcome.kind == "failure")
    return [*rounds, Round("fan_out", round(reply.events[-1].at, 6), answers, "", failures, ())]


async def _plain(way: Way, siblings: Sequence[Sibling]) -> Round:
    """Asks them one way. A gather that raises leaves nothing; of a TaskGroup the tasks that were
    done in time can be read."""
    tasks: list[asyncio.Task[str]] = []
    exception = ""
    try:
        if way == "TaskGroup":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(s.work(), name=s.id) for s in siblings]
        else:
            tasks = [asyncio.create_task(s.work(), name=s.id) for s in siblings]
            await asyncio.gather(*tasks, return_exceptions=way != "gather")
    except (RuntimeError, ExceptionGroup) as error:
        exception = f"{type(error).__name__}: {error}"
    seconds = round(
        asyncio.get_running_loop().time(), 6
    )  # virtual time goes in ticks of a quarter of a nanosecond
    running = [task for task in tasks if not task.done()]
    failures = tuple(
        task.get_name()
        for task in tasks
        if task.done() and not task.cancelled() and task.exception()
    )
    answers = tuple(
        task.get_name()
        for task in tasks
        if task.done() and not task.cancelled() and not task.exception()
    )
    for task in running:
        task.cancel()
    if exception:
        answers, failures = (() if way == "gather" else answers), ()
    return Round(
        way, seconds, answers, exception, failures, tuple(task.get_name() for task in running)
    )


async def _turn(siblings: Sequence[Sibling], cap: int, think: float) -> Reply:
    return await start(siblings, cap, think)
