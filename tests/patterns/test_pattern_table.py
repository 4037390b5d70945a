"""docs/patterns.md says which guarantee holds in which pattern; here every cell is tried."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.tools import StructuredTool

from kit.bench.grid.stand_ins.transient_store import TransientStore
from kit.bench.routing import RoutingKit
from kit.compose.deck import Deck, DeckSettings
from kit.compose.parts import GUARDS
from kit.core.bodies.call import ModelStarted
from kit.core.bodies.guard import CallDropped
from kit.core.card import AgentCard, Policy
from kit.core.context import Principal, Session
from kit.core.record import Message
from kit.core.simulation import Law, LogNormal, Part, Truth
from kit.models.simulated import SimulatedModel, canary_figure, use_truth
from kit.patterns import PATTERNS
from kit.runtime.team import bind
from kit.runtime.turn import Reply, run_turn
from tests.kits import bodies, spans
from tests.simulated_tools import simulated_tools

TEXT = (Path(__file__).parents[2] / "docs" / "patterns.md").read_text(encoding="utf-8")
WORDS = {
    "shop": "find coffee deals",
    "rewards": "check my points balance",
    "support": "get help with a receipt",
}


class Watched(SimulatedModel):
    """A simulated model that notes what it was shown."""

    seen: list[tuple[str, list[BaseMessage]]] = []

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Any:
        bound: Any = super().bind_tools(tools, tool_choice=tool_choice, **kwargs)
        inner = bound.astream

        def noting(messages: Any, config: Any = None, **more: Any) -> Any:
            self.seen.append((str(more.get("place")), list(messages)))
            return inner(messages, config, **more)

        bound.astream = noting
        return bound


async def turn(
    pattern: str,
    *,
    message: str = ", ".join(WORDS.values()),
    parts: Sequence[str] = tuple(WORDS),
    law: Law | None = None,
    tools: Mapping[str, Callable[[], Awaitable[str]]] | None = None,
    cap: int = 4,
    model: SimulatedModel | None = None,
    **more: Any,
) -> Reply:
    """One turn over three agents with a tool each, all on one simulated model."""
    cards = [
        AgentCard(id=i, description=f"All about {i}.", model="offline", tools=(f"look-{i}",))
        for i in WORDS
    ]
    lead = AgentCard(id="lead", description="Routes.", model="offline", sub_agents=tuple(WORDS))
    settings = DeckSettings(
        orchestrator="lead",
        required_blocks=(),
        guards=GUARDS,
        cap=cap,
        support_agent="support",
        default_sub_agent="shop",
        defaults=Policy(time_budget_ms=5000),
        turn_budget_ms=20_000,
    )
    mind = model or SimulatedModel(law=law or Law(latency=LogNormal(median=0.5)))
    broken = {f"look-{i}": _tool(f"look-{i}", work) for i, work in (tools or {}).items()}
    box = simulated_tools(cards, 0.2) | broken
    team = PATTERNS[pattern].team(
        Deck.of([lead, *cards], settings=settings), lambda deck: bind(deck, mind, box)
    )
    told = Truth(
        case=pattern, parts=tuple(Part(agent=i, query=WORDS[i], tool=f"look-{i}") for i in parts)
    )
    session = Session(id="s", principal=Principal(tenant_id="acme", user_id="alice"))
    try:
        with use_truth(told):
            running = run_turn(
                message, session, RoutingKit(team, TransientStore()), PATTERNS[pattern], **more
            )
        return await running
    finally:
        await team.aclose()


async def _breaks() -> str:
    raise OSError("secret=/srv")


async def _hangs() -> str:
    await asyncio.sleep(600)
    return "never"


def _tool(name: str, work: Callable[[], Awaitable[str]]) -> StructuredTool:
    async def look(**_: Any) -> str:
        return await work()

    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    return StructuredTool(name=name, description=name, args_schema=schema, coroutine=look)


def answered(reply: Reply, pattern: str, *agents: str) -> bool:
    return all(str(canary_figure(pattern, agent)) in reply.text for agent in agents)


async def owned_up(pattern: str) -> bool:
    reply = await turn(pattern, tools={"rewards": _breaks})
    return "rewards" in reply.text and "get an answer" in reply.text and "secret" not in reply.text


async def capped(pattern: str) -> bool:
    reply = await turn(pattern, cap=2)
    dropped = [body.agent for body in bodies(reply, CallDropped)]
    return (
        len(dropped) == 1
        and dropped[0] not in reply.routing.invoked
        and reply.routing.cap_behavior == "over"
    )


async def survived(pattern: str) -> bool:
    reply = await turn(pattern, tools={"rewards": _breaks})
    return answered(reply, pattern, "shop", "support")


async def contained(pattern: str) -> bool:
    reply = await turn(pattern, tools={"support": _hangs})
    return (
        answered(reply, pattern, "shop", "rewards")
        and reply.events[-1].at < 15
        and reply.status == "ok"
    )


async def one_voice(pattern: str) -> bool:
    reply = await turn(pattern)
    return any(
        isinstance(e.body, ModelStarted) and e.body.purpose == "compose" for e in reply.events
    )


async def side_by_side(pattern: str) -> bool:
    reply = await turn(pattern)
    times = sorted((span.started, span.ended) for span in spans(reply, "tool"))
    return any(later[0] < earlier[1] for earlier, later in pairwise(times))


async def apart(pattern: str) -> bool:
    model = Watched(law=Law(latency=LogNormal(median=0.5)))
    model.seen.clear()
    await turn(pattern, model=model)
    shown = [
        str([m.content for m in messages])
        for place, messages in model.seen
        if re.search(r"\.rewards:\d+$", place)
    ]
    return bool(shown) and not any(
        "coffee" in text or str(canary_figure(pattern, "shop")) in text for text in shown
    )


async def announced(pattern: str) -> bool:
    reply = await turn(pattern)
    first = next((e.seq for e in reply.events if e.kind in ("agent_started", "tool_started")), 0)
    return any(e.kind == "text" and e.seq < first for e in reply.events)


async def chatted(pattern: str) -> bool:
    reply = await turn(pattern, message="hello", parts=())
    return reply.status == "ok" and not any(
        e.kind in ("agent_started", "tool_started") for e in reply.events
    )


async def asked_again(pattern: str) -> bool:
    law = Law(latency=LogNormal(median=0.5), drop=1.0, under_report=0.0, retry_drop=0.0)
    return answered(await turn(pattern, law=law), pattern, *WORDS)


async def echoed(pattern: str) -> bool:
    said = [
        Message(turn_id="t0", role="user", text="my points are missing", agent=agent) if who == "user"
        else Message(turn_id="t0", role="assistant", text="Is it from a Fetch Shop purchase?", agent=agent)
        for agent in ("", "support")
        for who in ("user", "assistant")
    ]  # fmt: skip
    reply = await turn(
        pattern, message="Fetch shop", parts=("shop",), history=said, in_play=("support",)
    )
    return "support" in [o.agent for o in reply.outcomes][:1]


CHECKS: Mapping[str, Callable[[str], Awaitable[bool]]] = {
    "a failed part is owned up to": owned_up,
    "a call over the cap never runs and is recorded": capped,
    "the others' answers survive one failure": survived,
    "one agent's hang costs its own budget, not the turn": contained,
    "every word is composed by one voice": one_voice,
    "parts are worked on at the same time": side_by_side,
    "no sub-agent sees another's part": apart,
    "something is said before the work begins": announced,
    "small talk asks no sub-agent": chatted,
    "a dropped call is asked for again": asked_again,
    "a short answer to support's question stays with support": echoed,
}


def table() -> dict[str, dict[str, str]]:
    """Guarantee -> pattern -> yes or no, as the document says."""
    lines = [line for line in TEXT.splitlines() if line.startswith("|")]
    start = next(at for at, line in enumerate(lines) if line.startswith("| guarantee"))
    head = _cells(lines[start])[1:]
    rows = (_cells(line) for line in lines[start + 2 :])
    return {row[0]: dict(zip(head, row[1:], strict=True)) for row in rows if row[0] in CHECKS}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("guarantee", CHECKS)
async def test_every_cell_of_the_table_is_what_is_seen(guarantee: str):
    seen = {pattern: "yes" if await CHECKS[guarantee](pattern) else "no" for pattern in PATTERNS}
    assert table()[guarantee] == seen


def test_every_no_has_its_reason():
    reasons = re.findall(r"^- \*\*(.+?)\*\*:", TEXT, re.MULTILINE)
    wanted = sum(cell == "no" for row in table().values() for cell in row.values())
    given = sum(len(reason.split(", ")) - 1 for reason in reasons)
    assert table().keys() == CHECKS.keys() and given == wanted
