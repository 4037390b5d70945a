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
        liars.merge(sweep(range(start, min(start + BLOCK, scenes))))
    few = range(max(100, scenes // 5))
    offline = sweep(few, OfflineModel().paced(0))
    miscounting = sweep(few, scenes=miscounted)
    for tally, who in (
        (liars, "Scripted composers, most of them liars"),
        (offline, "The offline stand-in composes"),
        (miscounting, "Models that miscount: every turn lost a part"),
    ):
        print(f"{who}\n{tally.table()}", *tally.examples, sep="\n")
    print(f"{time.monotonic() - began:.0f} s")
    return int(any((liars.wrong + offline.wrong + miscounting.wrong).values()))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000))
