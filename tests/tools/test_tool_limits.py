"""No tool escapes its limits, whatever it is made of: its time, its further attempts, how many of
its calls run at once."""

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from kit import open_kit
from kit.compose.deck import Deck, load_deck
from kit.compose.parts import DeckSettings
from kit.core.bodies.call import ToolEnded, ToolRetry
from kit.core.card import AgentCard, Policy
from kit.core.errors import DeckError
from kit.core.outcome import Reason
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.tools.bounds import THREADS
from kit.tools.tool import ConfiguredTool, LimitedTool, ToolLimits, ToolResult
from kit.wire import Kit
from tests.forks import exit_code
from tests.kits import OFFLINE, asks, bodies, lead_over, leading
from tests.tools.test_own_tools import FILES, declare

AGAIN: dict[str, Any] = {"retries": 2, "idempotent": True}


class Counter:
    """Tools that note how often they run and how many of them at once; `fails` says how often they fail first."""

    def __init__(self, seconds: float = 0.0, fails: int = 0):
        self.calls = self.inside = self.most = 0
        self.seconds, self.fails = seconds, fails
        self.times: list[float] = []

    async def lookup(self) -> str:
        """Look it up."""
        self.calls += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.times.append(asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(self.seconds)
            if self.calls <= self.fails:
                raise ConnectionError(f"attempt {self.calls} refused")
            return "the answer"
        finally:
            self.inside -= 1


class OwnTool(BaseTool):
    """A tool class of somebody's own, with nothing of the kit in it."""

    name: str = "lookup"
    description: str = "Look it up."
    work: Callable[[], Any]

    def _run(self) -> str:
        raise NotImplementedError

    async def _arun(self) -> str:
        return await self.work()


FORMS: dict[str, Callable[[Callable[[], Any], ToolLimits], Any]] = {
    "a function": lambda work, limits: [LimitedTool(work, limits)],
    "a tool class": lambda work, limits: {"lookup": LimitedTool(OwnTool(work=work), limits)},
    "a configured tool": lambda work, limits: {
        "lookup": ConfiguredTool(
            lambda _: StructuredTool.from_function(coroutine=work, name="lookup"), limits
        )
    },
}


def deck_of(
    tools: object = None,
    config: Mapping[str, Any] | None = None,
    budget_ms: int = 8000,
    **settings: Any,
) -> Deck:
    """A lead over one desk with one tool; `settings` are the deck's."""
    desk = AgentCard(
        id="desk",
        description="Looks things up.",
        model="offline",
        tools=("lookup",),
        tool_config={"lookup": dict(config)} if config else {},
        policy=Policy(time_budget_ms=budget_ms),
    )
    return lead_over(desk, settings=DeckSettings(orchestrator="lead", **settings), tools=tools)


def models(calls: int = 1, delay: float = 0.0) -> dict[str, Any]:
    """A desk that calls its tool so many times at once and says what it read."""

    def desk(seen: list[Any]) -> Line:
        return (
            Line(str(seen[-1].content), delay=delay)
            if seen[-1].type == "tool"
            else Line(calls=[("lookup", {})] * calls)
        )

    return {
        "lead": leading(asks("desk")),
        "desk": ScriptedModel(desk),
    }


async def play(deck: Deck, calls: int = 1) -> Reply:
    async with open_kit(OFFLINE, deck=deck, models=models(calls)) as kit:
        return await kit.ask("look it up", kit.session("s"))


def endings(reply: Reply) -> list[str | None]:
    return [body.error for body in bodies(reply, ToolEnded)]


def retries(reply: Reply) -> list[ToolRetry]:
    return bodies(reply, ToolRetry)


@pytest.mark.parametrize("on_a_thread", [False, True])
async def test_a_tool_that_calls_sys_exit_costs_its_own_call_and_not_the_process(on_a_thread: bool):
    async def lookup() -> str:
        """Looks it up."""
        sys.exit(3)

    def leave_its_thread() -> str:
        """Looks it up."""
        sys.exit(3)

    tool = StructuredTool.from_function(coroutine=lookup)
    if on_a_thread:
        tool = StructuredTool.from_function(leave_its_thread, name="lookup")
    reply = await play(deck_of([tool]))
    assert endings(reply) == ["exception: SystemExit: 3"] and reply.text


@pytest.mark.req("K-25")
@pytest.mark.parametrize("form", FORMS)
async def test_a_call_that_takes_longer_than_its_tool_may_is_cut_off_whatever_the_tool_is(
    form: str,
):
    work = Counter(seconds=5)
    reply = await play(deck_of(FORMS[form](work.lookup, ToolLimits(timeout_ms=300))))
    assert endings(reply) == ["timeout: no answer within 0.3 s"]
    timing = reply.outcomes[0].timing
    assert work.inside == 0 and timing is not None and timing.ended == pytest.approx(0.3, abs=0.01)


@pytest.mark.req("K-25")
async def test_an_idempotent_tool_is_tried_again_and_each_attempt_stands_in_the_trace():
    work = Counter(fails=2)
    reply = await play(deck_of([LimitedTool(work.lookup, ToolLimits(**AGAIN))]))
    assert "the answer" in reply.text and endings(reply) == [None]
    assert [(retry.attempt, retry.pause_ms) for retry in retries(reply)] == [(1, 200), (2, 400)]
    assert "attempt 1 refused" in retries(reply)[0].error and "refused" not in reply.text
    assert [round(at - work.times[0], 3) for at in work.times] == [0, 0.2, 0.6]


@pytest.mark.req("K-25")
async def test_no_more_calls_run_at_once_than_the_tool_allows_over_all_turns_and_cohorts():
    work = Counter(seconds=1)
    deck = deck_of([LimitedTool(work.lookup, ToolLimits(at_once=2))])
    async with open_kit(OFFLINE, deck=replace(deck, flags={"new": False}), models=models(2)) as kit:
        sessions = [kit.session("a"), kit.session("b"), kit.session("c", flags={"new": True})]
        replies = await asyncio.gather(*(kit.ask("look it up", session) for session in sessions))
    assert (work.calls, work.most) == (6, 2)
    assert all(error is None for reply in replies for error in endings(reply))


async def test_waiting_for_a_place_counts_as_time_of_the_call():
    work = Counter(seconds=1)
    reply = await play(
        deck_of([LimitedTool(work.lookup, ToolLimits(at_once=1, timeout_ms=700))]), calls=2
    )
    assert sorted(map(str, endings(reply))) == [
        "timeout: no answer within 0.7 s",
        "timeout: no place among its calls at once within 0.7 s",
    ]
    assert work.calls == 1


RESULTS: dict[Reason, int] = {
    "unavailable": 3,
    "timeout": 3,
    "principal_mismatch": 1,
    "contract_violation": 1,
}


@pytest.mark.req("K-25")
@pytest.mark.parametrize("fault", RESULTS)
async def test_only_a_fault_that_may_pass_is_tried_again(fault: Reason):
    calls: list[str] = []

    async def lookup() -> tuple[str, ToolResult]:
        """Look it up."""
        calls.append("called")
        result = ToolResult(text="This data is unavailable right now.", fault=fault)
        return result.text, result

    tool = StructuredTool.from_function(coroutine=lookup, response_format="content_and_artifact")
    await play(deck_of([LimitedTool(tool, ToolLimits(**AGAIN))]))
    assert len(calls) == RESULTS[fault]


@pytest.mark.req("K-25")
async def test_nothing_is_tried_again_past_the_time_of_the_agent():
    work = Counter(seconds=0.35, fails=9)
    reply = await play(deck_of([LimitedTool(work.lookup, ToolLimits(**AGAIN))], budget_ms=1100))
    assert work.calls == 2 and len(retries(reply)) == 1, (
        "0.35 s, a pause of 0.2, 0.35 s; the next pause would end at 1.3"
    )
    assert reply.outcomes[0].reason == "exception"  # type: ignore[union-attr]


@pytest.mark.req("K-25")
async def test_a_tool_that_takes_no_notice_of_its_end_holds_no_turn_longer_than_the_turn_may_take():
    go = asyncio.Event()

    async def lookup() -> str:
        """Look it up."""
        while not go.is_set():
            with suppress(asyncio.CancelledError):
                await go.wait()
        return "late"

    deck = deck_of([LimitedTool(lookup, ToolLimits(timeout_ms=300))], turn_budget_ms=2000)
    async with open_kit(OFFLINE, deck=deck, models=models()) as kit:
        reply = await kit.ask("look it up", kit.session("s"))
        assert (reply.status, asyncio.get_running_loop().time()) == (
            "deadline",
            pytest.approx(2.5, abs=0.01),
        )
        assert reply.outcomes[0].reason == "timeout" and "late" not in reply.text  # type: ignore[union-attr]
        go.set()


# Where limits are declared


async def test_a_card_goes_before_deck_yaml_and_deck_yaml_before_the_tool():
    for config, deck, seconds in (
        ({"timeout_ms": 100}, {"timeout_ms": 200}, 0.1),
        (None, {"timeout_ms": 200}, 0.2),
        (None, {}, 0.3),
    ):
        tool = LimitedTool(Counter(seconds=5).lookup, ToolLimits(timeout_ms=300, at_once=1))
        reply = await play(deck_of([tool], config, tool_limits={"lookup": deck} if deck else {}))
        assert endings(reply) == [f"timeout: no answer within {seconds:g} s"]


def folder_of(tmp_path: Path, card: str = "", **fields: Any) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + (card if name.endswith("desk.yaml") else ""))
    declare(tmp_path / "helpdesk", ["./tools.py:TOOLS"], **fields)
    return tmp_path / "helpdesk"


FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "an unknown tool": (
        "",
        {"find_printr": {"timeout_ms": 5}},
        "deck.yaml:7: unknown tool 'find_printr'.* 'find_printer'",
    ),
    "a question's argument": (
        "",
        {"find_printer": {"confirm": "Look on {flor}?"}},
        "deck.yaml:7: `confirm` names 'flor', which is no argument of the tool: did you mean 'floor'?",
    ),
    "an empty question": (
        "",
        {"find_printer": {"confirm": " "}},
        "deck.yaml:7: 'tool_limits.find_printer.confirm': ' ' asks nothing: write a sentence .* or `confirm: true`",
    ),
    "a quoted no": ("", {"find_printer": {"confirm": "No"}}, "deck.yaml:7: .* 'No' asks nothing"),
    "a quoted yes": ("", {"find_printer": {"confirm": "true"}}, "deck.yaml:7: .* asks nothing"),
    "a quoted number": ("", {"find_printer": {"confirm": "3"}}, "deck.yaml:7: .* asks nothing"),
    "a number": ("", {"find_printer": {"confirm": 3}}, "deck.yaml:7: .* 3 asks nothing"),
    "nothing": ("", {"find_printer": {"confirm": None}}, "deck.yaml:7: .* asks nothing"),
    "a card's empty question": (
        "{confirm: ''}",
        {},
        "desk.yaml:6: tool 'open_ticket': confirm: '' asks nothing",
    ),
    "retries alone": (
        "",
        {"find_printer": {"retries": 2}},
        "deck.yaml:7.* may do a thing twice: say `idempotent: true`",
    ),
    "a card's retries": (
        "{retries: 2}",
        {},
        "desk.yaml:6: tool 'open_ticket': retries may do a thing twice",
    ),
    "another setting": (
        "{limit: 3}",
        {},
        "desk.yaml:6: tool 'open_ticket' takes no setting 'limit'; .* timeout_ms, ",
    ),
}


@pytest.mark.req("K-25")
@pytest.mark.parametrize("name", FAULTS)
def test_limits_that_cannot_hold_are_faults_with_their_line(name: str, tmp_path: Path):
    config, limits, sentence = FAULTS[name]
    card = f"tool_config: {{open_ticket: {config}}}\n" if config else ""
    with pytest.raises(DeckError, match=sentence):
        load_deck(folder_of(tmp_path, card, **({"tool_limits": limits} if limits else {})))


# Synchronous tools: a thread cannot be stopped


class Hanging:
    """A synchronous tool that hangs until it is let go."""

    def __init__(self) -> None:
        self.calls, self.go = 0, threading.Event()

    def lookup(self) -> str:
        """Look it up."""
        self.calls += 1
        self.go.wait(600)
        return "late"


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to pass")


def tool_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "tool"}


async def opened(kit: Kit, turns: int) -> list[Reply]:
    return await asyncio.gather(
        *(kit.ask("look it up", kit.session(f"s{n}")) for n in range(turns))
    )


@pytest.mark.realtime
@pytest.mark.req("K-25")
async def test_a_hanging_synchronous_tool_holds_its_places_and_no_more_threads_than_those():
    hanging, before = Hanging(), tool_threads()
    deck = deck_of([LimitedTool(hanging.lookup, ToolLimits(timeout_ms=400, at_once=2))])
    try:
        async with open_kit(OFFLINE, deck=deck, models=models()) as kit:
            replies = await opened(kit, 5)
            assert [reply.status for reply in replies] == ["failed"] * 5, "no turn was answered"
            threads = tool_threads() - before
            assert (hanging.calls, len(threads)) == (2, 2), (
                "what is given up keeps its place, and nobody else gets it"
            )
            assert sum("no place" in str(endings(reply)) for reply in replies) == 3
            hanging.go.set()
            await until(lambda: tool_threads() <= before)
            assert "late" in (await kit.ask("look it up", kit.session("t"))).text, (
                "the places are free again"
            )
    finally:
        hanging.go.set()


@pytest.mark.realtime
@pytest.mark.req("K-25")
async def test_a_synchronous_tool_without_limits_has_so_many_threads_and_leaves_those_of_the_loop_alone():
    hanging, before = Hanging(), tool_threads()
    try:
        async with open_kit(
            OFFLINE, deck=deck_of([hanging.lookup], budget_ms=600), models=models()
        ) as kit:
            replies = await opened(kit, THREADS + 4)
            assert len(tool_threads() - before) == hanging.calls == THREADS
            assert {reply.outcomes[0].reason for reply in replies} == {"timeout"}  # type: ignore[union-attr]
            assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 60) == "free"
    finally:
        hanging.go.set()
        await until(lambda: tool_threads() <= before)


def hang() -> None:
    """What a process does whose tool never comes back."""
    deck = deck_of([LimitedTool(Hanging().lookup, ToolLimits(timeout_ms=50))])
    asyncio.run(play(deck))


def test_a_hanging_tool_does_not_keep_the_process_from_ending():
    assert exit_code(hang) == 0
