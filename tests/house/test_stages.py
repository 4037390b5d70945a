"""`make test` goes through all of its stages, some beside each other, and ends with a table of them, whichever of them failed."""

import os
import subprocess
from pathlib import Path

from kit.settings import HOME

# Each of left and right waits until the other has begun.
MAKEFILE = """
last: ; @{stage} $@ 60 true
broken: ; @{stage} $@ 60 false
left right: ; @{stage} $@ 60 sh -c 'echo begin; touch in_$@; until [ -e in_left -a -e in_right ]; do sleep 0.01; done; echo end'
"""


def test_a_failed_stage_keeps_no_other_from_running_and_the_table_names_it(tmp_path: Path):
    (tmp_path / "Makefile").write_text(MAKEFILE.format(stage=HOME / ".ci/stage"))
    ended = subprocess.run(
        [str(HOME / ".ci/stages"), "broken left right", "broken", "last"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    output, table = ended.stdout.split("-- stages\n")
    for room in ("left", "right"):
        assert f"== {room}\nbegin\nend\n== {room} " in output
    *beside, broken, last = table.splitlines()
    assert {line.split()[1] for line in beside} == {"broken", "left", "right"}
    assert "== broken " in broken and broken.endswith("FAILED")
    assert "== last " in last and not last.endswith("FAILED")
