"""write_temp and read_lines: a task has its files to itself, and they end with it however it ends."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kit import open_kit
from kit.core.bodies.call import ToolEnded
from kit.core.context import Principal
from kit.core.errors import BindError
from kit.models.scripted import Line
from kit.runtime.turn import Reply
from kit.tools.task_memory import Task
from kit.tools.temp_files import (
    HOUR,
    MOST_CHARACTERS,
    MOST_LINES,
    READ,
    TOOLS,
    WRITE,
    TempFiles,
    open_temp_files,
)
from tests.kits import OFFLINE, bodies, desk_deck, desk_models

ANN, BOB = Principal(tenant_id="acme", user_id="ann"), Principal(tenant_id="acme", user_id="bob")
TASK = Task(ANN, "s1", "t1", "scout")
OTHERS = [
    TASK._replace(principal=BOB),
    TASK._replace(principal=Principal(tenant_id="globex", user_id="ann")),
    TASK._replace(session_id="s2"),
    TASK._replace(id="t2"),
    TASK._replace(session_id='s1", "t1'),
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TempFiles:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return open_temp_files()


async def test_a_task_reads_the_lines_it_asks_for_and_no_file_of_another_task(
    files: TempFiles,
):
    file_id = files.write(TASK, "".join(f"line {number}\n" for number in range(1_000)))
    assert files.lines(TASK, file_id, 2, 2) == ["line 2", "line 3"] and files.lines(
        TASK, file_id, 999, 5
    ) == ["line 999"]
    assert files.lines(TASK, file_id, 1_000, 5) == [] == files.lines(TASK, file_id, 0, -1)
    assert len(files.lines(TASK, file_id, 0, 10_000) or ()) == MOST_LINES
    for other in OTHERS:
        assert files.lines(other, file_id, 0, 1) is None and files.folder(other) != files.folder(
            TASK
        )
    escapes = [
        "../" + files.folder(TASK).name + "/" + file_id,
        "/etc/passwd",
        "..",
        ".",
        "",
        file_id + "\n",
        "tmp_2",
    ]
    assert [
        files.lines(task, escape, 0, 1) for task in (OTHERS[0], TASK) for escape in escapes
    ] == [None] * 2 * len(escapes)


async def test_writes_of_one_task_at_the_same_time_have_a_file_each(files: TempFiles):
    ids = await asyncio.gather(
        *(asyncio.to_thread(files.write, TASK, str(number)) for number in range(60))
    )
    assert len(set(ids)) == 60
    assert [files.lines(TASK, file_id, 0, 1) for file_id in ids] == [
        [str(number)] for number in range(60)
    ]


async def test_a_reading_is_bounded_also_where_the_data_is_one_line(files: TempFiles):
    lines = files.lines(TASK, files.write(TASK, "x" * 1_000_000), 0, 20)
    assert lines == ["x" * MOST_CHARACTERS + " [cut: this line has 1,000,000 characters]"]
    assert (
        len(
            "".join(files.lines(TASK, files.write(TASK, "y" * 999 + "\n" + "z\n" * 5), 0, 20) or ())
        )
        == 1_004
    )


@pytest.mark.req("AS-9")
async def test_folders_are_one_users_and_swept_an_hour_after_the_last_write(
    files: TempFiles,
):
    now = time.time()
    for task, age in ((TASK, HOUR + 60), (OTHERS[0], HOUR - 60)):
        files.write(task, "data")
        os.utime(files.folder(task), (now - age, now - age))
    assert (files.root.stat().st_mode | files.folder(TASK).stat().st_mode) & 0o077 == 0
    assert (
        files.sweep(now) == 1
        and not files.folder(TASK).exists()
        and files.folder(OTHERS[0]).exists()
    )
    files.root.chmod(0o755)
    with pytest.raises(BindError, match="remove it"):
        open_temp_files()


@pytest.mark.req("AS-9")
async def test_who_resumes_a_task_wipes_what_the_process_before_it_left(files: TempFiles):
    files.write(TASK, "half of it")
    files.write(OTHERS[0], "somebody else's")
    resumed = TempFiles(files.root)
    resumed.wipe(TASK)
    assert resumed.lines(TASK, "tmp_1", 0, 1) is None and resumed.lines(
        OTHERS[0], "tmp_1", 0, 1
    ) == ["somebody else's"]
    assert resumed.write(TASK, "anew") == "tmp_1"


async def ask(*lines: Any) -> Reply:
    deck = desk_deck([TOOLS], WRITE, READ)
    async with open_kit(OFFLINE, deck=deck, models=desk_models(*lines)) as kit:
        return await kit.ask("find outlets", kit.session("s", "acme", "ann"))


def results(reply: Reply, tool: str) -> list[Any]:
    return [body.result for body in bodies(reply, ToolEnded) if body.tool == tool]


def reads(messages: Sequence[Any]) -> Line:
    return Line(calls=[(READ, {"file_id": messages[-1].content, "start": 1, "n": 1})])


PUT = Line(calls=[(WRITE, {"data": "one\ntwo\nthree"})])


@pytest.mark.req("AS-9")
async def test_a_card_puts_data_away_reads_some_of_it_and_its_folder_ends_with_its_work(
    files: TempFiles,
):
    folders = list[int]()

    def counts(messages: Sequence[Any]) -> Line:
        folders.append(len(list(files.root.iterdir())))
        return Line("It says two.")

    reply = await ask(PUT, reads, counts)
    assert results(reply, READ) == ["two"] and folders == [1] and list(files.root.iterdir()) == []


@pytest.mark.req("AS-9")
@pytest.mark.parametrize(
    "end",
    [Line(error=RuntimeError("broken")), Line("late", delay=600.0)],
    ids=["fails", "is too late"],
)
async def test_the_folder_ends_also_with_an_agent_that(files: TempFiles, end: Line):
    reply = await ask(PUT, end)
    assert results(reply, WRITE) == ["tmp_1"] and list(files.root.iterdir()) == []
