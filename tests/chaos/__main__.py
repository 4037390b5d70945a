"""`python -m tests.chaos [scenes]`: the table of the sweep, by scripted liars and by the offline stand-in."""

import sys
import time

from kit.models.offline import OfflineModel
from tests.chaos.judge import Tally
from tests.chaos.scene import miscounted
from tests.chaos.stage import sweep

BLOCK = 250


def main(scenes: int) -> int:
    began = time.monotonic()
    liars = Tally()
    for start in range(0, scenes, BLOCK):
        _progress(f"{start:,} of {scenes:,} scenes")
        liars.merge(sweep(range(start, min(start + BLOCK, scenes))))
    _progress("the offline stand-in")
    offline = sweep(range(max(100, scenes // 5)), OfflineModel().paced(0))
    _progress("models that miscount")
    miscounting = sweep(range(max(100, scenes // 5)), scenes=miscounted)
    _progress("")
    print("Scripted composers, most of them liars\n" + liars.table())
    print(*liars.examples, sep="\n")
    print("\nThe offline stand-in composes\n" + offline.table())
    print(*offline.examples, sep="\n")
    print("\nModels that miscount: every turn lost a part\n" + miscounting.table())
    print(*miscounting.examples, sep="\n")
    print(f"{time.monotonic() - began:.0f} s")
    wrong = liars.wrong + offline.wrong + miscounting.wrong
    return 1 if any(wrong.values()) else 0


def _progress(said: str) -> None:
    """How far it has come, on one line; a terminal alone is told."""
    if sys.stderr.isatty():
        print(f"\r{said:<40}" if said else f"\r{'':<40}\r", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000))
