"""Writes docs/published.md: `python notebooks/make_published.py [FILE]`. It takes some seconds, for
the stand-in is run."""

import sys
from pathlib import Path

from kit.compose.models import load_models
from kit.home import HOME
from kit.runtime.clock import run_virtual
from studies.contract_figures import measure_trades, trade_table
from studies.published_figures import (
    evidence_rows,
    evidence_table,
    latency_table,
    read_evidence,
    route_stand_in,
    stand_in_table,
)
from studies.shipped_models import measure_figures, model_table, read_reference

_INTRODUCTION = """# What the published figures settle

Written by `python notebooks/make_published.py` from data/source/published.yaml; a test holds it to that. Intervals of shares
are Wilson's, of a difference Newcombe's, both at 95 %; samples are for a power of 80 %. Queries are taken for independent, which
is the most favourable reading: 30 queries in 3 batches of the same 10 would vouch for less.

The figures of paid models can be measured with a key only. Until then the cells of the last column stay empty: the simulated
models, the offline stand-in and a small local model say nothing about them."""
_LATENCIES = """## Latencies by path

Published of a variant that streams the sub-agents' own words. The sample is of turns on that path with one model: it fixes the
median within a tenth, or shows with a power of 80 % that it stays below its target, if times are log-normal with a spread of half
their mean. The Metrics page sets the percentiles of stored turns beside these, by pattern."""
_TRADES = """## What the contract's design expects of its choices

It gives no sample for any of these. Ours are simulated: models that take the published times, tools and conversations that are
assumptions (notebooks/studies/timeout_remedies.py, distilled_handoff.py). They show what the code does, and settle nothing about
a paid model. The models that the design names (Claude) are in cards/models.yaml; `make bench MODEL=claude-haiku-4-5` asks one,
with its package and a key ([models.md](models.md))."""
_BESIDE = """## The same messages on every model

The runs kept in data/results/reference, with stub sub-agents, so that only routing is measured: each is one run on one machine.
`make bench MODEL=gpt-4.1-mini`, with OPENAI_API_KEY set, leaves such a folder in .kit/grids; copied there, it fills its cells
when this document is written again."""
_HERE = """## What can be run here

The offline stand-in, which is no language model, on the mixed cases of data/cases over the eight cards of the consumer deck, with
stub sub-agents, a cap of 8 and all guards. It shows that these cases are hard enough to tell models apart, and settles nothing
about any model above."""


def write(path: Path = HOME / "docs" / "published.md") -> None:
    """Writes the document."""
    evidence, rows = read_evidence(), read_reference()
    figures = evidence_table(
        evidence_rows(evidence, measure_figures(evidence.figures, rows)), evidence.sources
    )
    models = model_table(load_models(HOME / "cards" / "models.yaml"), rows)
    stand_in = stand_in_table(run_virtual(route_stand_in()))
    latencies = latency_table(evidence.latencies)
    trades = trade_table(evidence.trades, run_virtual(measure_trades()))
    parts = (
        _INTRODUCTION,
        figures,
        _LATENCIES,
        latencies,
        _TRADES,
        trades,
        _BESIDE,
        models,
        _HERE,
        stand_in,
    )
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:2]))
