import asyncio
import sys
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from kit.bench import overlap
from kit.bench.charts import time_against_n, waterfall


async def _figures() -> dict[str, Figure]:
    runs = [
        *await overlap.exact(),
        *await overlap.exact(pattern=overlap.one_by_one),
        *await overlap.measured(),
        *await overlap.measured(pattern=overlap.one_by_one, sizes=(1, 2, 4, 8), runs=1),
    ]
    trace = await overlap.trace_one(overlap.MIXED, think=0.1)
    return {"fan_out": time_against_n(pd.DataFrame(runs)), "waterfall": waterfall(trace)}


def main(folder: str = "docs/figures") -> None:
    """Measures, and writes the figures of the docs into `folder`."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, figure in asyncio.run(_figures()).items():
        figure.savefig(target / f"{name}.png", dpi=200)
        print(target / f"{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:2])
