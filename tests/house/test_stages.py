"""`make test` goes through all of its stages and ends with a table of them, whichever of them failed."""

import os
import subprocess
from pathlib import Path

from kit.settings import HOME

MAKEFILE = """
first last: ; @{stage} $@ 60 true
broken: ; @{stage} $@ 60 false
left right: ; @{stage} $@ 60 ./meet $@
"""
MEET = """#!/usr/bin/env bash
# meet ROOM: ends once somebody is in both rooms.
echo "$1 begins"
touch "in_$1"
until [ -e in_left ] && [ -e in_right ]; do sleep 0.01; done
echo "$1 ends"
"""


def run_stages(folder: Path, *targets: str) -> "subprocess.CompletedProcess[str]":
    (folder / "Makefile").write_text(MAKEFILE.format(stage=HOME / ".ci/stage"))
    meet = folder / "meet"
    meet.write_text(MEET)
    meet.chmod(0o755)
    others = ("KIT_STAGES", "MAKE", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    return subprocess.run(
        [str(HOME / ".ci/stages"), *targets],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in others},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_failed_stage_keeps_no_other_from_running_and_the_table_names_it(tmp_path: Path):
    ended = run_stages(tmp_path, "first", "broken", "last")
    assert ended.returncode == 1
    heading, *table = ended.stdout.splitlines()[-4:]
    assert heading == "-- stages"
    assert [line.split()[1] for line in table] == ["first", "broken", "last"]
    assert [line.endswith("FAILED") for line in table] == [False, True, False]


def test_stages_in_one_word_run_beside_each_other_and_each_is_read_in_one_piece(tmp_path: Path):
    ended = run_stages(tmp_path, "broken left right", "last")
    assert ended.returncode == 1
    output, _, table = ended.stdout.partition("-- stages")
    for room in ("left", "right"):
        assert f"== {room}\n{room} begins\n{room} ends\n== {room} " in output
    stages = [line.split()[1] for line in table.splitlines() if line]
    assert set(stages) == {"broken", "left", "right", "last"} and stages[-1] == "last"
