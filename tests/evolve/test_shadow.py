"""Judges read turns once these have ended: beside the answer, bounded, counted, and with every verdict at its span."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage

from kit.bench.shadow import CLOSING, PATIENCE, ShadowJudges, shadow_judges
from kit.core.errors import DeckError
from kit.metrics.judgement import Judgement, judgements, turns_shed
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.handle import Reply
from kit.wire import Kit, open_kit
from tests.evolve.shared_deck import (
    BALANCE,
    FILES,
    HALF,
    models,
    sessions_above,
    sessions_below,
    settings,
    write_deck,
)
from tests.kits import nothing_runs

NEXT = FILES["desk/rewards.next.yaml"]
BY_MODEL = {
    "deck": HALF + "exempt: [judge]\n",
    "rewards_next": NEXT.replace(
        "judge: rule, rubric: response_quality", "judge: judge, rubric: fair"
    ),
}


def deck_with_a_model_as_judge(folder: Path) -> Path:
    """Judges the sub-agent by the card `judge`, and the turn by rule."""
    deck = write_deck(folder, **BY_MODEL)
    (deck / "judge.yaml").write_text("id: judge\ndescription: Judges.\nmodel: offline\n")
    (deck.parent / "rubrics").mkdir()
    (deck.parent / "rubrics" / "fair.yaml").write_text('id: fair\ncriteria: ["Is it fair?"]\n')
    return deck


def judging(line: Line) -> dict[str, Any]:
    return {**models(), "judge": ScriptedModel(lambda _: line)}


@asynccontextmanager
async def kit_and_judges(
    deck: Path, answers: Mapping[str, BaseChatModel], waiting: int | None = None, **options: Any
) -> AsyncGenerator[tuple[Kit, ShadowJudges]]:
    """The kit over a deck, and the judges that read its turns."""
    limits = () if waiting is None else (waiting,)
    async with (
        open_kit(settings(deck), models=answers, **options) as kit,
        shadow_judges(kit, *limits) as judges,
    ):
        assert judges is not None
        yield kit, judges


async def kept(kit: Kit) -> list[Judgement]:
    return await judgements(kit.store.open_documents().events)


async def asked(kit: Kit, name: str) -> Reply:
    return await kit.ask(BALANCE, kit.session(name, "acme", "alice"))


@pytest.mark.req("SO-9", "SO-10")
async def test_both_versions_are_judged_at_the_span_of_the_sub_agent_and_of_the_turn(
    tmp_path: Path,
):
    deck = write_deck(tmp_path, deck=HALF)
    names = (*sessions_below(0.5, 1), *sessions_above(0.5, 1))
    async with kit_and_judges(deck, models()) as (kit, judges):
        replies = [await asked(kit, name) for name in names]
        await judges.drain()
        judged = await kept(kit)
        of_session = await judgements(kit.store.open_documents().events, "acme", names[0])
    assert [judgement.versions["rewards"][0] for judgement in judged] == ["2", "2", "1", "1"]
    for number, reply in enumerate(replies):
        root, agent = judged[2 * number : 2 * number + 2]
        spans = {span.kind: span.id for span in reply.trace.spans if span.kind in ("turn", "agent")}
        assert (root.span_id, root.agent) == (spans["turn"], "")
        assert (agent.span_id, agent.agent) == (spans["agent"], "rewards")
        assert root.turn_id == agent.turn_id == reply.turn_id
        assert root.judge == agent.judge == "rule (response_quality)"
        # The figure comes from no tool: as a sub-agent's own answer it is made up, in the turn the sub-agent gave it.
        assert (root.score, agent.score) == (1.0, 0.0)
    assert [judgement.turn_id for judgement in of_session] == [replies[0].turn_id] * 2


@pytest.mark.req("SO-9", "SO-10")
async def test_of_the_sessions_with_the_version_in_place_as_many_are_judged_as_have_the_new_one(
    tmp_path: Path,
):
    deck = write_deck(tmp_path, deck=FILES["desk/deck.yaml"] + "canary: {rewards: {share: 0.2}}\n")
    judged: dict[str, set[str]] = {"1": set(), "2": set()}
    async with kit_and_judges(deck, models()) as (kit, judges):
        for number in range(60):
            await asked(kit, f"t{number}")
        await judges.drain()
        for judgement in await kept(kit):
            judged[judgement.versions["rewards"][0]].add(judgement.session)
    # Of 60 sessions 12 stand below a fifth, and 12 above four, give or take.
    assert 4 <= len(judged["1"]) <= 22 and 4 <= len(judged["2"]) <= 22


@pytest.mark.req("SO-10")
@pytest.mark.parametrize(
    "line", [Line('{"score": 1}', delay=30.0), Line(error=ConnectionError("gone"))]
)
def test_a_slow_or_dead_judge_slows_no_turn(line: Line, tmp_path: Path):
    deck = deck_with_a_model_as_judge(tmp_path)
    [name] = sessions_below(0.5, 1)

    async def turns(judged: bool) -> tuple[float, list[float], ShadowJudges | None]:
        loop = asyncio.get_running_loop()
        async with (
            open_kit(settings(deck), models=judging(line)) as kit,
            shadow_judges(kit) if judged else nullcontext() as judges,
        ):
            began = loop.time()
            replies = [await asked(kit, name) for _ in range(4)]
            assert [reply.status for reply in replies] == ["ok"] * 4
            return loop.time() - began, [reply.events[-1].at for reply in replies], judges

    alone = run_virtual(turns(judged=False))
    beside = run_virtual(turns(judged=True))
    assert beside[:2] == alone[:2]
    if not line.delay:
        assert beside[2] is not None and beside[2].verdicts_lost == 4


@pytest.mark.req("SO-10")
def test_a_verdict_that_never_comes_is_given_up_and_the_next_turn_is_judged(tmp_path: Path):
    deck = deck_with_a_model_as_judge(tmp_path)
    [name] = sessions_below(0.5, 1)
    lines = iter([Line('{"score": 1}', delay=1e6), Line('{"score": 0.25, "why": "short"}')])

    async def play() -> tuple[list[Judgement], int, float]:
        answers = {**models(), "judge": ScriptedModel(lambda _: next(lines))}
        async with kit_and_judges(deck, answers) as (kit, judges):
            await asked(kit, name)
            await asked(kit, name)
            await judges.drain()
            return await kept(kit), judges.verdicts_lost, asyncio.get_running_loop().time()

    judged, lost, seconds = run_virtual(play())
    own = [judgement for judgement in judged if judgement.agent]
    assert [(judgement.score, judgement.why) for judgement in own] == [(0.25, "short")]
    assert lost == 1 and PATIENCE <= seconds < 2 * PATIENCE


@pytest.mark.req("SO-10")
def test_what_waits_is_bounded_and_what_is_left_out_is_counted(tmp_path: Path):
    deck = deck_with_a_model_as_judge(tmp_path)
    [name] = sessions_below(0.5, 1)

    async def play() -> tuple[int, int, int]:
        slow = judging(Line('{"score": 1}', delay=10.0))
        async with kit_and_judges(deck, slow, 2) as (kit, judges):
            for _ in range(9):
                await asked(kit, name)
            await judges.drain()
            own = [judgement for judgement in await kept(kit) if judgement.agent]
            return judges.shed, await turns_shed(kit.store.open_documents().events), len(own)

    shed, noted, judged = run_virtual(play())
    # One is with the judge, two wait.
    assert (shed, noted, judged) == (6, 6, 3)


@pytest.mark.req("SO-10")
async def test_what_was_made_to_fail_is_not_judged_and_what_fails_by_itself_is_worth_nothing(
    tmp_path: Path,
):
    deck = write_deck(tmp_path, deck=HALF)
    [name] = sessions_below(0.5, 1)
    broken = {**models(), "rewards": ScriptedModel(lambda _: Line(error=ConnectionError("down")))}
    async with kit_and_judges(deck, broken, faults=True) as (kit, judges):
        session = kit.session(name, "acme", "alice")
        await kit.ask(BALANCE, session, faults=["rewards=timeout"])
        await judges.drain()
        assert await kept(kit) == []
        await kit.ask(BALANCE, session)
        await judges.drain()
        [own] = [judgement for judgement in await kept(kit) if judgement.agent]
    assert own.score == 0.0 and own.why.startswith("It failed: invocation")


@pytest.mark.req("SO-10")
async def test_a_judge_reads_what_the_sub_agent_was_asked_and_what_its_tools_said(tmp_path: Path):
    deck = deck_with_a_model_as_judge(tmp_path)
    for file in ("rewards.yaml", "rewards.next.yaml"):
        text = (deck / file).read_text()
        (deck / file).write_text(text + "tools: [balance]\n")
    [name] = sessions_below(0.5, 1)

    def balance() -> str:
        """The balance."""
        return "4975 points"

    def use(messages: list[BaseMessage]) -> Line:
        if messages[-1].type == "tool":
            return Line("You have 4,975 points.")
        return Line(calls=[("balance", {})])

    judge = ScriptedModel(lambda _: Line('{"score": 1}'))
    answers = {**models(), "rewards": ScriptedModel(use), "judge": judge}
    async with kit_and_judges(deck, answers, tools=[balance]) as (kit, judges):
        await asked(kit, name)
        await judges.drain()
    [[system, material]] = judge.seen
    shown = json.loads(str(material.content))
    assert "Is it fair?" in str(system.content)
    assert shown["message"] == BALANCE and shown["reply"] == "You have 4,975 points."
    assert shown["findings"] == {"rewards": "4975 points"}


async def test_a_judge_that_there_is_not_is_named_when_the_kit_opens(tmp_path: Path):
    deck = write_deck(tmp_path, rewards_next=NEXT.replace("judge: rule", "judge: nobody"))
    with pytest.raises(DeckError, match="unknown judge 'nobody'"):
        async with open_kit(settings(deck), models=models()):
            pass


@pytest.mark.req("SO-10")
def test_a_kit_closes_at_once_when_nothing_waits_and_soon_when_a_judge_hangs(tmp_path: Path):
    deck = deck_with_a_model_as_judge(tmp_path)
    [name] = sessions_below(0.5, 1)

    async def close(line: Line) -> float:
        loop = asyncio.get_running_loop()
        async with open_kit(settings(deck), models=judging(line)) as kit:
            async with shadow_judges(kit):
                await asked(kit, name)
                began = loop.time()
            assert nothing_runs()
            return loop.time() - began

    assert run_virtual(close(Line('{"score": 1}'))) == 0.0
    assert run_virtual(close(Line('{"score": 1}', delay=1e6))) == CLOSING


@pytest.mark.req("SO-10")
async def test_a_fork_that_tries_another_prompt_is_not_judged(tmp_path: Path):
    deck = write_deck(tmp_path, deck=HALF)
    [name] = sessions_below(0.5, 1)
    async with kit_and_judges(deck, models()) as (kit, judges):
        first = await asked(kit, name)
        await judges.drain()
        before = await kept(kit)
        [span] = [
            span for span in first.trace.spans if span.agent == "rewards" and span.kind == "model"
        ]
        who = kit.session("", "acme", "alice").principal
        await kit.fork(first.turn_id, span.id, prompt="Be brief.", who=who)
        await judges.drain()
        assert await kept(kit) == before
