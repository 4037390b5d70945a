"""Published figures beside ours: every shipped model and prompt, and an empty cell where nobody has had a key."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.bench.grid.results import read_results
from kit.bench.statistics.means import mean_of
from kit.core.model import ModelSpec, Published
from kit.home import HOME
from kit.metrics.estimate import wilson
from studies.published_figures import PublishedFigure

REFERENCE = HOME / "data" / "results" / "reference"
SHIPPED_MODELS = ("gpt-5.4-nano", "gpt-5.4-nano-low", "gpt-4.1-mini", "gpt-5.4-mini-low")
PROMPTS = ("plain", "strict-gating")
NEEDS = "*empty: needs a key*"
Rows = Sequence[Mapping[str, Any]]


def read_reference(folder: Path = REFERENCE) -> list[dict[str, Any]]:
    """Reads the rows of every run that is kept: data/results/reference/<run>/results.jsonl."""
    return [
        row for path in sorted(folder.glob("*/results.jsonl")) for row in read_results(path.parent)
    ]


def measure_figures(figures: Iterable[PublishedFigure], rows: Rows) -> dict[str, str]:
    """Returns figure id -> the same thing measured here, on messages for several sub-agents; of
    models that were run."""
    cells = {
        figure.id: _measurement(figure.counts, _of(rows, figure.needs, figure.prompt))
        for figure in figures
    }
    return {name: cell for name, cell in cells.items() if cell}


def model_table(specs: Mapping[str, ModelSpec], rows: Rows) -> str:
    """Formats a table in Markdown: a line for each shipped model and prompt, then for whatever else was run."""
    others = sorted({str(row["model"]) for row in rows} - set(SHIPPED_MODELS))
    ways = [(model, prompt) for model in SHIPPED_MODELS for prompt in PROMPTS]
    ways += [(model, prompt) for model in others for prompt in PROMPTS if _of(rows, model, prompt)]
    head = (
        "| model | prompt | published | ours: several sub-agents, every one and no other | "
        "ours: one | ours: routing, mean |"
    )
    return "\n".join(
        [
            head,
            "|---|---|---|---|---|---|",
            *(_line(specs.get(model), model, prompt, rows) for model, prompt in ways),
        ]
    )


def _line(spec: ModelSpec | None, model: str, prompt: str, rows: Rows) -> str:
    published = (
        [_published_cell(figure) for figure in spec.published if figure.prompt == prompt]
        if spec is not None
        else []
    )
    mine = [row for row in rows if row["model"] == model and row["prompt"] == prompt]
    cells = [
        _measurement("exact", _of(rows, model, prompt)),
        _measurement("exact", [row for row in mine if row["parts"] == 1]),
    ]
    is_model = mine and mine[0]["kind"] == "measured"
    cells.append(_measurement("ms", mine) if is_model else "not a model" if mine else "")
    return (
        "| "
        + " | ".join(
            [model, prompt, "; ".join(published) or "nothing", *(cell or NEEDS for cell in cells)]
        )
        + " |"
    )


def _published_cell(figure: Published) -> str:
    value = f"{figure.value:,.0f} {figure.unit}" if figure.unit else f"{figure.value:.1%}"
    return f"{figure.what}: {f'{figure.value:.0f} of {figure.of}' if figure.of else value} ({figure.source})"


def _of(rows: Rows, model: str, prompt: str) -> list[Mapping[str, Any]]:
    return [
        row
        for row in rows
        if row["model"] == model and row["prompt"] == prompt and row["parts"] > 1
    ]


def _measurement(counts: str, rows: Rows) -> str:
    """Returns what a figure counts, over these rows; an empty text where there are none."""
    short = [row for row in rows if row["failsafe"] in ("caught", "retry failed", "unseen")]
    match counts:
        case "ms":
            times = [
                1000 * row["routing_seconds"] for row in rows if row["routing_seconds"] is not None
            ]
            return _milliseconds(
                times, [str(row["case"]) for row in rows if row["routing_seconds"] is not None]
            )
        case "whole":
            right, of = len(rows) - len(short), len(rows)
        case "reported":
            right, of = sum(row["failsafe"] != "unseen" for row in short), len(short)
        case _:
            right, of = sum(row["scores"]["exact"] == 1.0 for row in rows), len(rows)
    return str(wilson(right, of)) if of else ""


def _milliseconds(times: Sequence[float], cases: Sequence[str]) -> str:
    if not times:
        return ""
    mean = mean_of(times, cases)
    return f"{mean.value:,.0f} ms [{mean.low:,.0f}, {mean.high:,.0f}]"
