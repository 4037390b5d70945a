"""`make test` goes through all of its stages and ends with a table of them, whichever of them failed."""

import os
import subprocess
from pathlib import Path

from kit.settings import HOME

MAKE = """#!/usr/bin/env bash
if [ "$2" = broken ]; then command=false; else command=true; fi
exec {stage} "$2" 60 "$command"
"""


def run_stages(
    folder: Path, *targets: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    make = folder / "make"
    make.write_text(MAKE.format(stage=HOME / ".ci/stage"))
    make.chmod(0o755)
    variables = {name: value for name, value in os.environ.items() if name != "KIT_STAGES"}
    return subprocess.run(
        [str(HOME / ".ci/stages"), *targets],
        cwd=folder,
        env={**variables, "MAKE": str(make), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_failed_stage_keeps_no_other_from_running_and_the_table_names_it(tmp_path: Path):
    ended = run_stages(tmp_path, "first", "broken", "last")
    assert ended.returncode == 1
    heading, *table = ended.stdout.splitlines()[-4:]
    assert heading == "-- stages"
    assert [line.split()[1] for line in table] == ["first", "broken", "last"]
    assert [line.endswith("FAILED") for line in table] == [False, True, False]
