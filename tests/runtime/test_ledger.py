"""One ledger of tokens: the spans of a turn, its row and the metrics say the same, however the turn went."""

import asyncio
import uuid
from typing import Any

import pytest

from kit.compose.topology import Topology
from kit.core.bodies.call import AgentEnded, AgentStarted, ToolStarted
from kit.core.bodies.speech import Status
from kit.core.context import OPERATOR
from kit.core.event import Event
from kit.core.fault import KINDS, kinds_of
from kit.core.outcome import Failure, Usage, total
from kit.core.timeout import diagnoses
from kit.core.trace import trace_of
from kit.patterns import PATTERNS
from kit.runtime.turn import Reply, run_turn
from kit.stores.tally import Tally
from kit.stores.turn_store import TurnStore
from kit.wire import open_kit
from tests.kits import ALICE, EMBEDDED, answering, spans
from tests.patterns.test_topology import EDITOR, ENSEMBLE, JUDGED, PIPELINE, RACE, joint
from tests.runtime.test_faults import QUESTION

TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "model_calls")


def figures(usages: Any, *names: str) -> list[Any]:
    whole = total(usages)
    cost = whole.cost if whole.cost is None else round(whole.cost, 9)
    return [*(getattr(whole, name) for name in (*TOKENS, *names)), cost, whole.estimated]


def usages(tally: Tally) -> list[Usage]:
    """What the metrics know of each purpose's calls."""
    return [
        Usage(
            **{name: tally.counts[name, purpose] for name in TOKENS},
            cost=tally.dollars.get(("cost", purpose)),
            estimated=tally.counts["estimated", purpose] > 0,
        )
        for purpose in tally.of("purpose")
    ]


def one_ledger(reply: Reply, store: TurnStore) -> None:
    """Model spans, agent spans with the orchestrator's own calls, the turn, its row and its part of
    the metrics agree."""
    row = store.turn(reply.turn_id, OPERATOR)
    assert row is not None and all(span.status != "running" for span in reply.trace.spans)
    models = [span.usage for span in spans(reply, "model")]
    assert (
        figures(models)
        == figures([reply.usage])
        == figures([part.usage for part in row.measures.spent])
    )
    assert len(models) == reply.usage.model_calls == row.model_calls
    assert len(spans(reply, "tool")) == reply.usage.tool_calls == row.tool_calls
    assert (row.input_tokens, row.output_tokens) == (
        reply.usage.input_tokens,
        reply.usage.output_tokens,
    )
    own = [*spans(reply, "model"), *spans(reply, "agent")]
    for agent in spans(reply, "agent"):
        below = [span.usage for span in own if span.parent_id == agent.id]
        assert figures(below) == figures([agent.usage]), agent.name


@pytest.mark.req("K-7")
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_spans_turn_and_metrics_agree_in_every_pattern_under_every_fault(
    pattern: str,
):
    async with open_kit(EMBEDDED, faults=True) as kit:
        root, replies = kit.team.root, list[Reply]()
        # Each fault is played in one pattern, and each pattern under some of the faults.
        kinds = KINDS if pattern == "mediated" else KINDS[::7]
        for kind in kinds:
            agent = "shop" if kind in kinds_of("shop", root) else root
            reply = await kit.ask(
                QUESTION, kit.session(uuid.uuid4().hex), pattern, faults=[f"{agent}={kind}"]
            )
            one_ledger(reply, kit.store)
            replies.append(reply)
        tally = kit.store.tally()
    assert len(replies) == len(kinds) > 1
    assert figures(usages(tally)) == figures(reply.usage for reply in replies)


@pytest.mark.req("K-7")
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_a_turn_that_is_stopped_at_any_moment_agrees_too(pattern: str):
    async with open_kit(EMBEDDED.model_copy(update={"pace": 1.0})) as kit:
        await kit.ask("hello", kit.session("warm"), pattern)
        for n in range(0, 12, 4):
            turn = kit.ask(QUESTION, kit.session(f"s{n}"), pattern)
            await asyncio.sleep(0.15 + n / 4)
            turn.cancel()
            one_ledger(await turn, kit.store)


@pytest.mark.req("K-7")
@pytest.mark.parametrize(
    ("topology", "late"), [(RACE, 0.1), (RACE, 60.0), (ENSEMBLE, 60.0), (PIPELINE, 60.0)], ids=str
)
async def test_calls_of_members_that_lose_or_are_late_agree(topology: Topology, late: float):
    others = dict.fromkeys(("quick", "second", "editor"), answering("Another.", late))
    models = {"explainer": answering("One.", 0.5), "judge": answering('{"best": 1}'), **others}
    kit = joint(topology, models, {**JUDGED, "editor": EDITOR})
    reply = await run_turn("go", ALICE, kit)
    one_ledger(reply, kit.store)
    assert len(spans(reply, "agent")) >= 3


def test_a_span_that_nobody_closed_ends_with_what_it_is_part_of_and_a_running_one_with_the_newest_event():
    """As an older store, or a process that died, may have left it."""
    shop = AgentStarted(agent="shop", call_id="c1", query="q")
    find = ToolStarted(agent="shop", tool="find", call_id="x")
    lost = Failure(call_id="c1", agent="shop", axis="invocation", reason="timeout", detail="4 s")
    steps = [
        (1.0, "a", None, shop),
        (2.0, "k", "a", find),
        (5.0, "a", None, AgentEnded(agent="shop", outcome=lost)),
        (6.0, "b", None, shop),
        (9.0, "b", None, Status(agent="shop", status="thinking")),
    ]
    events = [
        Event(seq=n, at=at, turn_id="t1", span_id=span, parent_span_id=above, body=body)
        for n, (at, span, above, body) in enumerate(steps)
    ]
    trace = trace_of(events)
    ends = {span.id: (span.ended, span.status) for span in trace.spans}
    assert ends == {"a": (5.0, "error"), "k": (5.0, "running"), "b": (9.0, "running")}
    [(_, diagnosis)] = diagnoses(trace)
    assert (diagnosis.cause, diagnosis.slowest, diagnosis.seconds) == ("tool", "find", 3.0)
