"""The counter of what was broken on purpose is made of what the store has, and can say that something is wrong."""

import asyncio

import pytest

from kit.bench.case import FAILING
from kit.core.bodies.turn import Completed, TurnStarted
from kit.core.fault import CANARY, Fault, kinds_of
from kit.core.fault_injection import inject_faults
from kit.metrics.breakages import Breakages, breakages, broken_parts
from kit.metrics.measures import measure
from kit.models.scripted import ScriptedModel
from kit.runtime.turn import Turn, run_turn
from kit.wire import open_kit
from tests.app.logs import WHO, stamp
from tests.kits import ALICE, EMBEDDED, SmallKit, answering, asks, failing, leading, small_kit

QUESTION = "my receipt didn't scan, how many points do I have, and find coffee deals"


async def test_every_fault_that_costs_a_part_is_counted_and_no_other():
    async with open_kit(EMBEDDED, faults=True) as kit:
        for kind in kinds_of("rewards", "orchestrator"):
            seconds = 0.01 if kind == "slow_drip" else None
            fault = Fault(where="rewards", kind=kind, seconds=seconds)
            before = breakages(kit.store)
            await kit.ask(QUESTION, kit.session(kind), faults=[fault])
            cost = int(kind in FAILING)
            after = breakages(kit.store)
            assert (after.broken, after.owned_up) == (
                before.broken + cost,
                before.owned_up + cost,
            ), kind
        words = "8 parts broken on purpose, 8 said to be missing, 0 answers with a raw error or somebody else's data"
        assert str(breakages(kit.store)) == words
        await kit.ask(QUESTION, kit.session("plain"))
        assert breakages(kit.store) == Breakages(broken=8, owned_up=8)
        assert breakages(kit.store, "somebody else's") == Breakages()


LOST = ("routing_fails", "routing_hangs", "refuses")
"""What costs an orchestrator the whole message."""


@pytest.mark.parametrize(
    ("pattern", "agent", "costly"),
    [
        ("mediated", "orchestrator", LOST),
        ("monolith", "orchestrator", (*LOST, "drops_call")),
        (
            "monolith",
            "rewards",
            (
                "error_envelope",
                "foreign_principal",
                "bad_payload",
                "version_break",
            ),
        ),
    ],
)
async def test_what_an_orchestrator_or_a_monolith_loses_is_counted(
    pattern: str, agent: str, costly: tuple[str, ...]
):
    lost: set[str] = set()
    async with open_kit(EMBEDDED, faults=True) as kit:
        for kind in kinds_of(agent, "orchestrator"):
            seconds = 0.0 if kind == "slow_drip" else None
            fault = Fault(where=agent, kind=kind, seconds=seconds)
            before = breakages(kit.store)
            await kit.ask(QUESTION, kit.session(kind), pattern, faults=[fault])
            after = breakages(kit.store)
            cost = after.broken - before.broken
            assert (after.owned_up - before.owned_up, after.leaked) == (cost, 0), kind
            if cost:
                lost.add(kind)
        assert breakages(kit.store).broken == len(lost)
    assert lost == set(costly)


def breakable_kit(
    answer_of_b: str = "b is known.", model_of_a: ScriptedModel | None = None
) -> SmallKit:
    models = {"a": model_of_a or answering("a is known.", 5), "b": answering(answer_of_b, 5)}
    kit = small_kit(leading(asks("a", "b")), models)
    kit.team = kit.team.with_faults()
    return kit


async def broken(kit: SmallKit, *, stop: bool = False) -> Breakages:
    """What the store counts after a turn in which agent a was broken after three seconds."""
    with inject_faults(()):
        turn: Turn = run_turn("about a and b", ALICE, kit)
    await asyncio.sleep(3)
    turn.break_agent(Fault(where="a", kind="raise"))
    await asyncio.sleep(1)
    if stop:
        turn.cancel()
    await turn
    return breakages(kit.store)


async def test_an_agent_that_is_broken_in_the_middle_counts_and_one_of_a_stopped_turn_does_not():
    assert await broken(breakable_kit()) == Breakages(broken=1, owned_up=1)
    assert await broken(breakable_kit(), stop=True) == Breakages()


async def test_an_agent_that_failed_for_a_reason_of_its_own_before_it_was_broken_does_not_count():
    kit = breakable_kit(model_of_a=failing(ConnectionError("refused"), 1))
    assert await broken(kit) == Breakages()
    [turn] = kit.store.turns()
    assert turn.measures.parts.failed == 1


def test_an_empty_log_and_a_fault_that_cannot_be_read_count_nothing():
    assert broken_parts([]) == 0
    started = TurnStarted(
        message="points?",
        session_id="s",
        principal=WHO,
        pattern="mediated",
        started_at=1000.0,
        faults=("words of an earlier version",),
    )
    refused = Completed(status="failed", text="Try again in a moment.")
    log = stamp([(0.0, "s1", None, started), (1.0, "s1", None, refused)])
    assert measure(log).broken == 0


async def test_a_stranger_s_data_in_an_answer_is_a_leak():
    counts = await broken(breakable_kit(f"b is known: {CANARY}."))
    assert counts == Breakages(broken=1, owned_up=1, leaked=1)
