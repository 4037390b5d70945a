"""Plans whose process is killed at each of their points, and taken up again: `python -m
tests.plan_kills` prints the counts."""

import sys
from collections import Counter

from tests.plan_points import TASKS, kill_at, points_of_a_plan


def kill_evenly(most: int, honours_keys: bool) -> int:
    """Kills plans at so many points, evenly over all there are; prints what became of them, and
    returns how many were broken."""
    every = points_of_a_plan(honours_keys)
    most = min(most, every)
    chosen = sorted({1 + every * number // most for number in range(most)})
    results = {point: kill_at(point, honours_keys) for point in chosen}
    ends = Counter(status for _, status, _ in results.values())
    broken = {point: reasons for point, (_, _, reasons) in results.items() if reasons}
    service = "honours keys" if honours_keys else "honours no keys"
    killed = sum(was_killed for was_killed, _, _ in results.values())
    print(f"{len(TASKS)} steps over a service that {service}: {every} points")
    print(
        f"  {killed} of {len(chosen)} processes killed; {dict(ends)}; {len(broken)} broken",
        flush=True,
    )
    for point, reasons in broken.items():
        print(f"  point {point}: {', '.join(reasons)}")
    return len(broken)


if __name__ == "__main__":
    every_point = 1_000_000  # more than there are
    most, without_keys = [*map(int, sys.argv[1:]), every_point, every_point][:2]
    broken = kill_evenly(most, honours_keys=True) + kill_evenly(without_keys, honours_keys=False)
    sys.exit(broken > 0)
