"""A grid's table, its origin, and its rows for a spreadsheet."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kit.ui.benchmarks.verdict import Line
from kit.ui.shared.table import row_html, table_html

_TONES = {
    "better": "good",
    "worse": "bad",
    "equivalent": "good",
    "cannot tell": "",
    "no verdict": "bad",
    "baseline": "busy",
}


def verdicts_html(lines: Sequence[Line], measure: str, kinds: str, base: str) -> str:
    """Returns a table of every way by one measure, with its interval and its verdict against the baseline."""
    head = (
        "Way",
        measure.capitalize(),
        "95 % interval",
        f"Beside {base}",
        "Verdict",
        "Cases it takes",
    )
    caption = f"All figures are {escape(kinds)}."
    return table_html(
        "Ways with intervals and verdicts",
        map(_row, lines),
        head,
        kind="bench rows",
        caption=caption,
    )


def _row(line: Line) -> str:
    tone = f'<i class="tag {_TONES[line.verdict]}">{escape(line.verdict)}</i>'
    cells = [
        escape(line.value),
        escape(line.interval),
        escape(line.difference) or "–",
        tone,
        escape(line.more) or "–",
    ]
    if line.verdict == "baseline":
        kind = ' class="base"'
    else:
        kind = ""
    return row_html(line.way, *cells, attributes=f'{kind} data-way="{escape(line.way)}"')


def origin_html(provenance: Mapping[str, Any], number: int, count: int) -> str:
    """Returns what a run was made of as HTML: revision, versions, seeds, inputs, models."""
    revision = str(provenance.get("revision", "unknown"))
    if revision.endswith("+"):
        difference = " (files differed from it)"
    else:
        difference = ""
    laws: dict[Any, Any] = {}
    for key, spec in provenance.get("models", {}).items():
        if spec.get("law"):
            laws[key] = spec.get("law")
    facts = {
        "Run": f"{number} of {count}" if count > 1 else "",
        "Revision": revision.rstrip("+") + difference,
        "Clock": f"{provenance.get('clock', '?')} time",
        "Seed": str(provenance.get("seed", "?")),
        "Models": ", ".join(f"{key}: {kind}" for key, kind in provenance.get("kinds", {}).items()),
        "Laws": "; ".join(f"{key} {_law(law)}" for key, law in laws.items()),
        "Inputs": ", ".join(
            f"{key} {digest}" for key, digest in provenance.get("inputs", {}).items()
        ),
        "Versions": ", ".join(
            [
                f"python {provenance.get('python', '?')}",
                *(f"{k} {v}" for k, v in provenance.get("versions", {}).items()),
            ]
        ),
    }
    lines = "".join(
        f"<div><dt>{key}</dt><dd>{escape(value)}</dd></div>"
        for key, value in facts.items()
        if value
    )
    return f'<dl class="made">{lines}</dl>'


def _law(law: Mapping[str, Any]) -> str:
    """Returns the law as models.yaml has it, its figures in four digits."""
    return json.dumps(
        json.loads(json.dumps(law), parse_float=lambda text: float(f"{float(text):.4g}"))
    ).replace('"', "")


def csv_of(folder: Path) -> bytes:
    """Returns a CSV row for each scored turn, as `load_frame` gives them. Raises DataError for a
    folder without results."""
    from kit.bench.charts import (
        load_frame,
    )  # brings pandas and matplotlib: the table does not wait for them

    return load_frame(folder).to_csv(index=False).encode()
