"""Sub-agents asked side by side, some of which misbehave: what their caller has in hand, by plain asyncio and by the kit.

The siblings are simulated: each takes its seconds, then answers or raises. Compared in virtual time, so that figures are exact.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage

from kit.bench.routing import kept_by
from kit.compose.deck import Deck, DeckSettings
from kit.core.card import AgentCard, Policy
from kit.core.context import Session
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.context import RunContext
from kit.runtime.host import Host
from kit.runtime.team import Team, bind
from kit.runtime.turn import Reply, Turn, run_turn
from studies.direct_call import NOBODY, caller

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
        return AgentCard(id=self.id, description=f"Answers about {self.id}.", model="offline", policy=policy)

    @property
    def model(self) -> ScriptedModel:
        error = RuntimeError(self.error) if self.error else None
        return ScriptedModel(lambda _: Line(f"The part of {self.id}.", delay=self.seconds, error=error))

    async def work(self) -> str:
        """The same without the kit."""
        await asyncio.sleep(self.seconds)
        if self.error:
            raise RuntimeError(self.error)
        return self.id


class Round(NamedTuple):
    """What a caller has once it can go on."""

    way: str
    seconds: float
    in_hand: tuple[str, ...]
    """Whose answers it holds."""
    raised: str
    """What reached it as an exception."""
    told: tuple[str, ...]
    """Of whose failure it holds a value."""
    adrift: tuple[str, ...]
    """Who is still at work, with nobody to answer to."""


def team(siblings: Sequence[Sibling], cap: int = 8, think: float = 0.0) -> Team:
    """An orchestrator over these; its scripted model takes `think` seconds to ask all of them, and again to compose."""
    asks = [(f"ask_{s.id}", {"query": f"everything about {s.id}", "intent_count": len(siblings)}) for s in siblings]

    def lead(messages: list[BaseMessage]) -> Line:
        results = [m for m in messages if isinstance(m, ToolMessage)]
        good = " ".join(str(m.content) for m in results if m.status == "success")
        return Line(good, delay=think) if results else Line("Let me ask around.", calls=asks, delay=think)

    root = AgentCard(id="orchestrator", description="Asks.", model="offline", sub_agents=tuple(s.id for s in siblings))
    deck = Deck.of([root, *(s.card for s in siblings)], settings=DeckSettings(orchestrator=root.id, cap=cap), name="siblings")
    models: dict[str, str | BaseChatModel] = {sibling.id: sibling.model for sibling in siblings}
    return bind(deck, {root.id: ScriptedModel(lead), **models}, {})


def alone(siblings: Sequence[Sibling], cap: int = 8) -> RunContext:
    """A caller's context with no turn around it, for calling `dispatch` and `fan_out` by hand on the running loop."""
    return caller(team(siblings, cap), [sibling.id for sibling in siblings], cap)


def start(siblings: Sequence[Sibling], cap: int = 8, think: float = 0.0, keep: Host | None = None) -> Turn:
    """One turn that asks all of them, on the running loop, kept where `keep` keeps its turns; None keeps nothing."""
    session = Session(id=f"siblings-{uuid.uuid4().hex}", principal=NOBODY)
    return run_turn("Everything, please.", session, kept_by(keep, team(siblings, cap, think)))


async def exact(siblings: Sequence[Sibling], cap: int = 8, think: float = 0.0) -> Reply:
    """The same turn in virtual time."""
    return await asyncio.to_thread(run_virtual, _turn(siblings, cap, think))


async def compare(siblings: Sequence[Sibling]) -> list[Round]:
    """The same siblings by asyncio as it is usually written, and by the kit; in virtual time."""
    rounds = [await asyncio.to_thread(run_virtual, _plain(way, siblings)) for way in get_args(Way)]
    reply = await exact(siblings)
    answered = tuple(outcome.agent for outcome in reply.outcomes if outcome.kind == "answer")
    told = tuple(outcome.agent for outcome in reply.outcomes if outcome.kind == "failure")
    return [*rounds, Round("fan_out", round(reply.events[-1].at, 6), answered, "", told, ())]


async def _plain(way: Way, siblings: Sequence[Sibling]) -> Round:
    """A gather that raises leaves its caller nothing; of a TaskGroup the tasks that were done in time can still be read."""
    tasks: list[asyncio.Task[str]] = []
    raised = ""
    try:
        if way == "TaskGroup":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(s.work(), name=s.id) for s in siblings]
        else:
            tasks = [asyncio.create_task(s.work(), name=s.id) for s in siblings]
            await asyncio.gather(*tasks, return_exceptions=way != "gather")
    except (RuntimeError, ExceptionGroup) as error:
        raised = f"{type(error).__name__}: {error}"
    seconds = round(asyncio.get_running_loop().time(), 6)  # virtual time goes in ticks of a quarter of a nanosecond
    adrift = [task for task in tasks if not task.done()]
    failed = tuple(task.get_name() for task in tasks if task.done() and not task.cancelled() and task.exception())
    good = tuple(task.get_name() for task in tasks if task.done() and not task.cancelled() and not task.exception())
    for task in adrift:
        task.cancel()
    in_hand = () if raised and way == "gather" else good
    return Round(way, seconds, in_hand, raised, () if raised else failed, tuple(task.get_name() for task in adrift))


async def _turn(siblings: Sequence[Sibling], cap: int, think: float) -> Reply:
    return await start(siblings, cap, think)
