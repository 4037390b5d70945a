"""Measures afresh and writes the figures of README and docs: `python notebooks/make_figures.py [FOLDER]`."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from kit.bench.charts import BLUE, GREY, ORANGE, RED, RUST, ecdf, load_frame
from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.run import run_grid
from kit.home import HOME
from kit.settings import Settings
from kit.wire import open_kit
from studies import fan_out_time
from studies.charts import against, sent_trace, time_against_n, waterfall
from studies.loopback_opik import opik_stub
from studies.racing import Traffic, cost_points, monthly_figures, play_races


async def _fan_out() -> dict[str, Figure]:
    runs = [
        *await fan_out_time.play_exact(),
        *await fan_out_time.play_exact(pattern=fan_out_time.ONE_BY_ONE),
        *await fan_out_time.play_measured(),
        *await fan_out_time.play_measured(
            pattern=fan_out_time.ONE_BY_ONE, sizes=(1, 2, 4, 8), runs=1
        ),
    ]
    trace = await fan_out_time.trace_one(fan_out_time.MIXED, think=0.1)
    return {"fan_out": time_against_n(pd.DataFrame(runs)), "waterfall": waterfall(trace)}


async def _opik() -> Figure:
    """The figure of notebook 00: what the Opik SDK sent to a stub of the server for one turn of the stand-in."""
    with opik_stub() as stub:
        settings = Settings(model="offline", store=":memory:", opik_url=stub.url)
        async with open_kit(settings) as kit:
            await kit.ask(
                "my receipt didn't scan, how many points do I have, and find coffee deals",
                kit.session("figure"),
            )
        (trace,) = stub.traces.values()
        return sent_trace(trace, stub.spans.values())


def _patterns() -> Figure:
    """The figure of notebook 07: how long a message of several parts takes in every pattern; simulated."""
    spec = read_grid(HOME / "data" / "grids" / "patterns_small.yaml")
    with tempfile.TemporaryDirectory() as folder:
        run_grid(spec, Path(folder), open_kit)
        rows: Any = load_frame(Path(folder))
    several = rows[rows["parts"] > 1]
    order = several.groupby("pattern")["seconds"].median().sort_values(ascending=False).index
    colours = dict(zip(order, ["#5B4B8A", RED, "#2F7D5B", GREY, RUST, ORANGE, BLUE], strict=False))
    slow, fast = several.groupby("pattern")["seconds"].median().loc[[order[0], order[-1]]]
    title = f"Of several parts: the median turn takes {fast:.1f} to {slow:.1f} s, by pattern alone"
    return ecdf(
        several,
        {"ttft": "to the first text", "seconds": "to the last"},
        "pattern",
        colours,
        title,
        "simulated seconds",
    )


def _race() -> Figure:
    """The figure of notebook 11: what a race costs and saves for 1.2 million users; simulated."""
    ways = monthly_figures(play_races(), Traffic())
    colours = dict(zip((way.way for way in ways), (GREY, RUST, BLUE, "#2F7D5B"), strict=True))
    slow, quick = ways[0], ways[2]
    title = f"A quick twin in a race: {slow.p95.value:.1f} to {quick.p95.value:.1f} s in the 95th percentile"
    xlabel, ylabel = (
        "simulated dollars a month, at assumed prices",
        "simulated seconds, 95th percentile",
    )
    return against(pd.DataFrame(cost_points(ways)), colours, title, xlabel, ylabel)


def main(target: Path = HOME / "docs" / "figures") -> None:
    """Measures, and writes the figures of the docs into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    drawn = {
        **asyncio.run(_fan_out()),
        "opik": asyncio.run(_opik()),
        "patterns": _patterns(),
        "race": _race(),
    }
    for name, figure in drawn.items():
        figure.savefig(target / f"{name}.png", dpi=200)
        print(target / f"{name}.png")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
