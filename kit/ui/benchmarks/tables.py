"""A grid's table, its origin, and its rows for a spreadsheet."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kit.bench.run_page.content import Spend
from kit.ui.benchmarks.verdict import Line
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.template import render, table_html

_TONES: Mapping[str, Tone] = {
    "better": "good",
    "worse": "bad",
    "equivalent": "good",
    "cannot tell": "",
    "no verdict": "bad",
    "baseline": "busy",
}


def verdicts_html(lines: Sequence[Line], measure: str, kinds: str, base: str) -> str:
    """Returns a table of every way by one measure, with its interval and its verdict against the baseline.

    A verdict that several ways share, all of them, is said once above the table.
    """
    compared = [line.verdict for line in lines if line.verdict != "baseline"]
    common: Tag | None = None
    if len(compared) > 1 and len(set(compared)) == 1:
        common = Tag(text=compared[0], tone=_TONES[compared[0]])
    head = ["Way", measure.capitalize(), "95 % interval", f"Beside {base}", "Cases it takes"]
    if common is None:
        head.insert(4, "Verdict")
    rows = [(line, Tag(text=line.verdict, tone=_TONES[line.verdict])) for line in lines]
    return render("verdicts", head=head, lines=rows, kinds=kinds, common=common)


def spends_html(spends: Iterable[Spend]) -> str:
    """Returns a table of what the turns of each way took; calls and tokens are means of a turn, seconds the median."""
    rows: list[list[str]] = []
    for spend in spends:
        row = [spend.way]
        for value, form in (
            (spend.calls, ",.1f"),
            (spend.tokens_in, ",.0f"),
            (spend.tokens_out, ",.0f"),
            (spend.seconds, ",.2f"),
            (spend.dollars, ",.4f"),
        ):
            row.append("not known" if value is None else format(value, form))
        rows.append(row)
    head = ("Way", "Model calls", "Tokens read", "Tokens written", "Seconds", "Dollars in all")
    return table_html("What the turns of each way took", rows, head, kind="bench rows")


def csv_of(folder: Path) -> bytes:
    """Returns a CSV row for each scored turn, as `load_frame` gives them. Raises DataError for a
    folder without results."""
    # It brings pandas and matplotlib: the table does not wait for them.
    from kit.bench.charts import load_frame

    return load_frame(folder).to_csv(index=False).encode()
