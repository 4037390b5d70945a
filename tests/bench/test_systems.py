"""Whole systems under the bench: what they answer is scored, what they do not tell is None, what they
fail by is owned up to."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kit import Reported, Usage
from kit.bench.case import Case
from kit.bench.grid.grid import Limits
from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.report import report
from kit.bench.grid.results import read_results
from kit.bench.grid.run import run_grid
from kit.bench.run_page.page import run_page
from kit.bench.scoring.own_judges import Loss
from kit.bench.scoring.played_cell import PlayedCell
from kit.bench.systems.bench import systems_spec
from kit.bench.systems.case_table import case_of
from kit.bench.systems.command import command_bridge
from kit.bench.systems.play import System
from kit.bench.systems.source import SystemSource, read_source
from kit.bridges.part import Bridge, Called, Calling, Piece, Spent
from kit.bridges.recognise import bridge_of, load_bridge
from kit.cli import main
from kit.core.errors import DataError
from kit.core.model import ModelSpec
from kit.worlds.service.serve import serving
from tests.grids.test_grid import OPENER

realtime = pytest.mark.realtime
CASES = 20
MINE = """
from kit import Reported, Usage
from words import GATE

async def answer(message):
    return Reported(f"It is {GATE}.", ["flights"], Usage(input_tokens=9, output_tokens=3, cost=0.01))

def silent(message):
    return f"It is {GATE}."

def keyless(message):
    raise KeyError("MY_API_KEY")

def nervous(message):
    if "7" in message:
        raise ValueError("seven")
    return f"It is {GATE}."

def unreachable(message):
    raise ConnectionRefusedError("nobody is there")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own: a system, what it imports, and twenty cases."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "words.py").write_text('GATE = "gate 4"\n')
    lines = [f"where is number {n}?,Gate 4,flights" for n in range(CASES)]
    (tmp_path / "cases.csv").write_text(
        "\n".join(["message,expected_text,expected_agents", *lines])
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("words", None)
    return tmp_path


def bench(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    """The exit code of `kit bench`, its result, and what it said besides."""
    code = main(["bench", *words, "--json", "--out", "out"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out or "{}"), printed.err


@realtime
def test_two_functions_and_a_table_become_a_verdict_without_any_card(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    code, result, words = bench(
        "./mine.py:answer", "cases.csv", "--against", "./mine.py:silent", capsys=capsys
    )
    assert code == 0 and (result["cells"], result["played"], result["failed"]) == (40, 40, 0)
    assert "nobody can say before it has answered" in words
    (verdict,) = result["verdicts"]
    assert verdict["scorer"] == "contains" and verdict["verdict"] == "cannot tell"
    assert result["dollars"] == pytest.approx(0.2)
    first = read_results(folder / "out")[0]
    assert (first["called"], first["scores"]["exact"], first["input_tokens"]) == (["flights"], 1, 9)
    assert first["scores"]["intents_reported"] is None, "no system has a way to say it"
    rows = [row for row in read_results(folder / "out") if row["model"].endswith("silent")]
    assert len(rows) == CASES
    for row in rows:
        assert row["scores"]["contains"] == 1 and row["scores"]["exact"] is None
        counts = [row[name] for name in ("cost", "model_calls", "input_tokens", "output_tokens")]
        assert counts == [None] * 4, "what a system does not tell is none and never nought"
    assert (
        "it does not say whom it asked (no score of routing there)"
        in (folder / "out" / "report.md").read_text()
    )
    (made,) = json.loads((folder / "out" / "provenance.json").read_text())["runs"].values()
    sources = {system["source"]: len(system["digest"]) for system in made["systems"].values()}
    assert sources == {"./mine.py:answer": 32, "./mine.py:silent": 32}


@realtime
@pytest.mark.parametrize(
    ("name", "error_class", "words"),
    [
        ("keyless", "system", "KeyError: 'MY_API_KEY' (mine.py:"),
        ("unreachable", "network", "nothing answers there"),
    ],
)
def test_a_system_that_has_never_answered_is_asked_five_times_and_gets_no_verdict(
    name: str, error_class: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    command = [f"./mine.py:{name}", "cases.csv", "--against", "./mine.py:silent"]
    code, result, _ = bench(*command, "--concurrency", "1", capsys=capsys)
    assert code == 1 and result["failed"] == 5 and result["played"] == CASES
    assert f"failed 5 times for the same reason ({error_class})" in result["stopped"]
    assert not result["verdicts"]
    text = (folder / "out" / "report.md").read_text()
    assert words in text and "no verdict, 5 of 5 cells failed" in text and "worse" not in text
    (folder / "mine.py").write_text(
        MINE.replace(f"def {name}(message):", f"def {name}(message):\n    return 'gate 4'")
    )
    code, result, _ = bench(*command, capsys=capsys)
    assert code == 0 and result["failed"] == 0 and len(result["verdicts"]) == 1, "once it is mended"


@realtime
def test_what_raises_beside_answers_is_an_outcome_and_counts_as_wrong(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    code, result, _ = bench("./mine.py:nervous", "cases.csv", capsys=capsys)
    assert code == 0 and (result["played"], result["failed"]) == (CASES, 0)
    assert result["dollars"] is None, "it tells no cost, and what it has spent is not known"
    rows = read_results(folder / "out")
    wrong = [row for row in rows if row["scores"]["contains"] == 0]
    assert len(wrong) == 2 and {row["status"] for row in wrong} == {"failed"}
    assert all("ValueError: seven" in row["error"] for row in wrong)
    text = (folder / "out" / "report.md").read_text()
    assert "2 of 20 turns without an answer, scored as it stands, such as ValueError" in text


@realtime
def test_a_second_run_asks_nothing_and_an_edit_is_asked_anew(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    command = ["./mine.py:silent", "cases.csv", "--out", "out"]
    main(["bench", *command])
    main(["bench", *command])
    assert "0 cells played, 20 were there" in capsys.readouterr().out
    rows = (folder / "cases.csv").read_text()
    (folder / "cases.csv").write_text(rows.replace("number 3?", "number 33?"))
    main(["bench", *command])
    assert "1 cell played, 19 were there" in capsys.readouterr().out
    (folder / "words.py").write_text('GATE = "gate 5"\n')
    main(["bench", *command])
    assert "20 cells played, 0 were there" in capsys.readouterr().out, "a file it imports"


@realtime
def test_what_a_program_in_python_imports_and_reads_counts_for_its_cells(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "tool.py").write_text("from words import GATE\nprint(GATE)\n")
    (folder / "prompt.md").write_text("Say the gate.\n")
    few = (folder / "cases.csv").read_text().splitlines()[:3]
    (folder / "cases.csv").write_text("\n".join(few))
    command = [f"command:{sys.executable} tool.py", "cases.csv", "--out", "out"]
    main(["bench", *command])
    main(["bench", *command])
    assert "0 cells played, 2 were there" in capsys.readouterr().out
    for file in ("words.py", "prompt.md"):
        (folder / file).write_text('GATE = "gate 5"\n')
        main(["bench", *command])
        assert "2 cells played, 0 were there" in capsys.readouterr().out, file


@realtime
def test_a_judge_that_was_mended_scores_what_is_there_and_the_last_line_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    command = ["./mine.py:silent", "cases.csv", "--judge", "./judges.py:short", "--out", "out"]
    for size in (12, 13):
        (folder / "judges.py").write_text(
            f"def short(case, observation):\n    return float(len(observation.text) < {size})\n"
        )
        main(["bench", *command])
    first, second = re.findall(r"\d+ cells played.*(?=; results)", capsys.readouterr().out)
    assert first == "20 cells played, 0 were there"
    assert second.startswith("0 cells played, 0 were there, 20 were scored anew")


def test_an_object_is_told_from_another_by_its_name_and_a_function_by_its_source():
    class Agent:
        pass

    def digests(value: object) -> set[str]:
        return {SystemSource(name, value, Path()).identity for name in ("one", "other")}

    async def answer(message: str) -> str:
        return message

    assert len(digests(Agent())) == 2 and len(digests(answer)) == 1


@realtime
def test_once_the_dollars_are_spent_both_ways_have_the_same_cases(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    command = ["./mine.py:answer", "cases.csv", "--against", "./mine.py:answer"]
    code, result, words = bench(*command, "--dollars", "0.2", "--concurrency", "1", capsys=capsys)
    assert code == 1 and result["played"] == 20 and "0.2 dollars is reached" in result["stopped"]
    cases: dict[str, set[str]] = {}
    for row in read_results(folder / "out"):
        cases.setdefault(row["model"], set()).add(row["case"])
    first, second = cases.values()
    assert first == second
    assert "After 10 of 40 cells: $0.1000 are spent, which makes about $0.40 for all" in words
    code, result, words = bench(*command, "--concurrency", "1", capsys=capsys)
    assert code == 0 and result["played"] == 40
    assert "After 10 of 20 cells: $0.1000 are spent, which makes about $0.20 for all" in words


@realtime
def test_a_run_that_is_told_to_stops_when_it_is_decided(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "theirs.py").write_text("def answer(message):\n    return 'I do not know.'\n")
    command = ["./mine.py:answer", "cases.csv", "--against", "./theirs.py:answer"]
    code, result, _ = bench(*command, "--stop-when-decided", "--dollars", "1", capsys=capsys)
    assert code == 0 and result["decided"] and result["played"] < 2 * CASES
    assert result["stopped"].startswith("decided after 1")
    assert "of $1.00 spent" in result["stopped"]
    (verdict,) = result["verdicts"]
    assert verdict["verdict"] == "better" and not verdict["planned"], "by the test of any look"
    _, again, _ = bench(*command, "--stop-when-decided", "--dollars", "1", capsys=capsys)
    assert again["played"] == result["played"]


@realtime
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["./mine.py:anwser", "cases.csv"], "has no 'anwser': did you mean 'answer'?"),
        (["./mien.py:answer", "cases.csv"], "did you mean 'mine.py'?"),
        (["mine.py", "cases.csv"], "names nothing that can be asked; write ./FILE.py:NAME"),
        (["command:no-such-program -x", "cases.csv"], "no program 'no-such-program'"),
        (["./mine.py:silent", "plain.csv"], "nothing says what a right answer is"),
        (["./mine.py:silent", "cases.csv", "--margin", "cost=1"], "cost', which is not compared"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(
    words: list[str], sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "plain.csv").write_text("message\nhello\n")
    code, _, said = bench(*words, capsys=capsys)
    assert code == 2 and sentence in said.splitlines()[-1]


def test_two_folders_with_a_module_of_one_name_are_no_pair_for_one_process(tmp_path: Path):
    sources: list[SystemSource] = []
    for name in ("before", "after"):
        home = tmp_path / name
        home.mkdir()
        (home / "agent.py").write_text("import prompts\n\nasync def answer(message): ...\n")
        (home / "prompts.py").write_text("")
        sources.append(read_source(name, f"./{name}/agent.py:answer", tmp_path))
    with pytest.raises(DataError, match="both import a module 'prompts', each of its own folder"):
        systems_spec(sources, [{"message": "a", "expected_text": "b"}])


@realtime
def test_systems_stand_beside_models_in_a_grid_file(tmp_path: Path):
    (tmp_path / "mine.py").write_text("def answer(message):\n    return 'You have 5 points.'\n")
    case: dict[str, Any] = {
        "id": "a",
        "user": "how many points do I have",
        "expected_sub_agents": ["rewards"],
    }
    case["forbids"] = ["secret"]
    (tmp_path / "cases.jsonl").write_text(json.dumps(case))
    grid: dict[str, Any] = {
        "models": ["offline"],
        "systems": {
            "mine": "./mine.py:answer",
            "echo": "command:cat",
        },
        "cases": [{"file": "cases.jsonl"}],
        "baseline": {"model": "offline"},
        "sub_agents": "stubs",
        "verdicts": ["exact", "resists"],
    }
    path = tmp_path / "small.yaml"
    path.write_text(json.dumps(grid))
    spec = read_grid(path)
    run = run_grid(spec, tmp_path / "out", OPENER, 1)
    rows = read_results(tmp_path / "out")
    assert run.complete and [row["model"] for row in rows] == ["offline", "echo", "mine"]
    assert [row["scores"]["exact"] for row in rows] == [1, None, None]
    assert "mine: 1 turn; it does not say whom it asked" in report(spec, run)
    # A system that told no calls has no `exact`, and one that stands on one axis is a baseline of all.
    path.write_text(json.dumps({**grid, "baseline": {"model": "mine"}}))
    spec = read_grid(path)
    verdicts = report(spec, run_grid(spec, tmp_path / "by_system", OPENER, 1)).splitlines()
    assert "- echo, exact: no verdict, for no case has a value on both sides" in verdicts
    starts = [line.partition("; difference")[0] for line in verdicts]
    assert "- resists: offline / deck / deck / mediated / none 1.000 against mine 1.000" in starts
    assert "- resists: echo 1.000 against mine 1.000" in starts
    page = run_page(tmp_path / "by_system")
    assert "echo cannot be told apart from mine.</strong>" in page
    assert "no verdict, for no case has a value on both sides" in page
    path.write_text(json.dumps({**grid, "baseline": {"model": "mine"}, "verdicts": ["exact"]}))
    spec = read_grid(path)
    text = report(spec, run_grid(spec, tmp_path / "by_system", OPENER, 1))
    assert "no verdict by exact, for nothing of the baseline was scored" in text
    # Systems alone may expect agents that no deck has.
    (tmp_path / "cases.csv").write_text("message,expected_agents\nwhere is it,flights\n")
    alone = {
        "systems": {"mine": "./mine.py:answer", "echo": "command:cat"},
        "cases": [{"file": "cases.csv"}],
        "baseline": {"model": "mine"},
        "scorers": ["exact"],
        "verdicts": ["exact"],
    }
    path.write_text(json.dumps(alone))
    assert run_grid(read_grid(path), tmp_path / "alone", OPENER, 1).complete


def case(message: str) -> Case:
    return case_of({"message": message, "expected_agents": "flights"}, "here", message)


CASE = case("where is it")


def system_of(value: object, **fields: Any) -> System:
    bridge = value if hasattr(value, "ask") else bridge_of(value, "mine")
    values: dict[str, Any] = {"agents": {"flights"}, "prices": {}, **fields}
    return System(name="mine", bridge=bridge, **values)  # pyright: ignore[reportArgumentType]


async def play(value: object, case: Case = CASE, **fields: Any) -> PlayedCell:
    played = await system_of(value, **fields).play(case, "key")
    assert isinstance(played, PlayedCell)
    return played


async def test_an_answer_that_is_late_is_none_and_the_work_on_it_is_stopped():
    ended: list[str] = []

    async def slow(message: str):
        try:
            yield "It is "
            await asyncio.sleep(600)
        finally:
            ended.append(message)

    played = await play(slow, limits=Limits(seconds=30))
    (turn,) = played.turns
    assert (turn.observation.status, turn.observation.text) == ("deadline", "")
    assert played.error == "no answer within 30 s" and ended == ["where is it"]


HEARD = {
    "a tool of the name of an agent that the case expects": (
        [Called("flights"), Called("look_up"), Piece("gate "), "4"],
        ("flights",),
    ),
    "a call that is named only as it begins": (
        ["I will look.", Calling("flights", "1"), Called("tool", call_id="1"), "gate 4"],
        ("flights",),
    ),
    "a tool alone: an agent may have been asked": ([Called("search"), "gate 4"], None),
    "it reports that it asked nobody": ([Reported("gate 4", [])], ()),
}
"""What a system yields, and whom it asked then."""


@pytest.mark.parametrize(("parts", "called"), HEARD.values(), ids=HEARD)
async def test_parts_of_a_bridge_say_who_was_asked_and_what_was_spent(
    parts: Sequence[Any], called: tuple[str, ...] | None
):
    async def streaming(message: str):
        yield Spent(Usage(input_tokens=5))
        for part in parts:
            yield part
        yield Spent(Usage(input_tokens=2))

    (turn,) = (await play(streaming)).turns
    assert turn.observation.text == "gate 4" and turn.observation.routed == (called is not None)
    assert turn.observation.called == (called or ())
    assert (turn.fields["input_tokens"], turn.fields["output_tokens"]) == (7, None)


async def test_an_account_without_credit_is_no_wrong_answer():
    class OutOfCredit(Exception):
        status_code = 429
        body = {"code": "insufficient_quota", "message": "You exceeded your current quota"}

    async def broke(message: str) -> str:
        try:
            raise OutOfCredit
        except OutOfCredit as error:
            raise RuntimeError("the agent failed") from error

    outcome = await system_of(broke).play(CASE, "key")
    assert isinstance(outcome, Loss) and outcome.error_class == "auth"
    assert "no credit left" in outcome.line


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()])
async def test_nothing_that_a_system_raises_ends_the_run(error: BaseException):
    async def raising(message: str) -> str:
        raise error

    played = await play(raising)
    assert played.turns[0].observation.status == "failed" and played.error


async def test_what_is_no_text_is_no_answer():
    async def junk(message: str) -> Any:
        return Reported(cast("str", 42))

    assert "answered a value of type int" in (await play(junk)).error


async def test_earlier_turns_of_a_case_are_told():
    heard: list[str] = []

    async def answer(message: str) -> str:
        heard.append(message)
        return "ok"

    turns = [
        {"user": "hi", "expected_sub_agents": [], "assistant": "hello", "skip": True},
        {"user": "and now?", "expected_sub_agents": []},
    ]
    await play(answer, case_of({"turns": turns}, "here", "a"))
    assert heard == ["User: hi\nAssistant: hello\n\nand now?"]


@realtime
def test_a_plain_function_that_hangs_does_not_keep_the_run_from_ending(tmp_path: Path):
    import threading

    def stuck(message: str) -> str:
        if message == "b":
            threading.Event().wait()
        return "gate 4"

    rows = [{"message": name, "expected_text": "gate 4"} for name in "ab"]
    spec = systems_spec(
        [SystemSource("stuck", stuck, tmp_path)], rows, limits={"seconds": 0.3, "concurrency": 1}
    )
    run = run_grid(spec, tmp_path / "out", OPENER, 1)
    assert (run.done, run.failed) == (2, 0)


PROGRAM = """
import json, os, sys, time
message = json.loads(sys.stdin.readline())["message"]
if message == "hang":
    open("pid", "w").write(str(os.getpid()))
    time.sleep(600)
if message == "fail":
    sys.exit("it broke")
if message == "text":
    print("gate 4")
else:
    usage = {"input_tokens": 3, "cost": 0.5}
    print(json.dumps({"text": "gate 4", "calls": ["flights"], "usage": usage}))
"""


def program_in(folder: Path) -> Bridge:
    (folder / "program.py").write_text(PROGRAM)
    return command_bridge((sys.executable, "program.py"), folder)


@realtime
def test_a_command_is_asked_in_json_and_answers_as_it_likes(tmp_path: Path):
    async def ask_all() -> list[PlayedCell]:
        bridge = program_in(tmp_path)
        return [await play(bridge, case(message)) for message in ("text", "json", "fail")]

    text, told, failed = asyncio.run(ask_all())
    assert (text.turns[0].observation.text, text.turns[0].observation.routed) == ("gate 4", False)
    assert told.turns[0].observation.called == ("flights",) and told.dollars == 0.5
    assert told.turns[0].fields["output_tokens"] is None
    assert failed.error.startswith("CommandError: exit code 1: it broke")


@realtime
def test_a_command_that_nobody_waits_for_is_killed(tmp_path: Path):
    async def stop() -> None:
        task = asyncio.create_task(play(program_in(tmp_path), case("hang")))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(stop())
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@realtime
async def test_a_service_that_leaves_out_whom_it_asked_is_not_taken_to_have_asked_nobody():
    replies: dict[str, Any] = {
        "silent": {"text": "gate 4"},
        "nobody": {"text": "gate 4", "calls": []},
        "flights": {"text": "gate 4", "calls": ["flights"], "usage": {"input_tokens": 3}},
    }

    async def reply(request: Request) -> Response:
        message = (await request.json())["message"]
        return JSONResponse(replies[message])

    seen: list[tuple[str, ...] | None] = []
    async with serving(Starlette(routes=[Route("/", reply, methods=["POST"])])) as url:
        bridge = load_bridge(url, Path())
        for message in replies:
            observation = (await play(bridge, case(message))).turns[0].observation
            seen.append(observation.called if observation.routed else None)
    assert seen == [None, (), ("flights",)]


@realtime
async def test_what_lost_an_answer_of_a_service_is_told_by_its_status():
    async def reply(request: Request) -> Response:
        return Response(status_code=int((await request.json())["message"]))

    said: dict[int, str] = {}
    async with serving(Starlette(routes=[Route("/", reply, methods=["POST"])])) as url:
        system = system_of(load_bridge(url, Path()))
        for status in (401, 404, 429, 503, 422):
            outcome = await system.play(case(str(status)), "key")
            said[status] = outcome.line if isinstance(outcome, Loss) else "an outcome"
    assert "a key is refused" in said[401]
    assert "check the name" in said[404]
    assert "ask less at once" in said[429]
    assert "the endpoint failed" in said[503]
    assert said[422] == "an outcome", "a request that is refused was made by the system"


def spans(*names: Sequence[Any]) -> Any:
    """A system that says what it does in OpenTelemetry spans alone, each inside the one before."""
    from contextlib import ExitStack

    from opentelemetry import trace

    async def answer(message: str) -> str:
        with ExitStack() as stack:
            for name, attributes in names:
                span = trace.get_tracer("agents").start_as_current_span(name)
                stack.enter_context(span).set_attributes(
                    {f"gen_ai.{key}": value for key, value in attributes.items()}
                )
                await asyncio.sleep(0.01)
        return "gate 4"

    return answer


ROOT = ("invoke_agent front", {"operation.name": "invoke_agent", "agent.name": "front"})
FLIGHTS = ("invoke_agent flights", {"operation.name": "invoke_agent", "agent.name": "flights"})
TOOL = ("execute_tool look_up", {"operation.name": "execute_tool", "tool.name": "look_up"})
CHAT = (
    "chat small",
    {
        "operation.name": "chat",
        "request.model": "small",
        "usage.input_tokens": 100,
        "usage.output_tokens": 10,
    },
)
SMALL = ModelSpec(key="small", provider="openai", price_in=1.0, price_out=10.0)


async def test_spans_of_a_framework_say_who_was_asked_and_what_was_spent():
    played = await play(spans(ROOT, FLIGHTS, TOOL, CHAT), prices={"small": SMALL})
    (turn,) = played.turns
    assert turn.observation.called == ("flights",), "neither the system itself nor a plain tool"
    assert (turn.fields["model_calls"], turn.fields["input_tokens"]) == (1, 100)
    assert played.dollars == pytest.approx(0.0002)
    for unnamed in (CHAT, ROOT):
        (turn,) = (await play(spans(unnamed))).turns
        assert not turn.observation.routed, "it may choose among its agents by other means"
        assert turn.fields["cost"] is None, "no price is no cost"


async def test_turns_at_the_same_time_hear_their_own_spans():
    system = system_of(spans(ROOT, FLIGHTS, CHAT))
    other = system_of(spans(ROOT, CHAT))
    cells = await asyncio.gather(*[s.play(CASE, "key") for s in (system, other) * 3])
    called = [cell.turns[0].observation.called for cell in cells if isinstance(cell, PlayedCell)]
    assert called == [("flights",), ()] * 3 and len(cells) == 6


async def test_a_report_goes_before_what_spans_say():
    async def answer(message: str) -> Reported:
        await spans(ROOT, FLIGHTS)(message)
        return Reported("gate 4", ["hotels"])

    (turn,) = (await play(answer)).turns
    assert turn.observation.called == ("hotels",)
