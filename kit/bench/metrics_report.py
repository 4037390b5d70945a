"""Prints metrics and alerts as rows for a terminal or a file, and reads labels from a file."""

import json
from collections.abc import Sequence
from pathlib import Path

from kit.bench.json_lines import validate_lines
from kit.metrics.alert import alerts
from kit.metrics.summary import Label, metrics
from kit.stores.turn_store import TurnStore


def read_labels(path: Path) -> tuple[Label, ...]:
    """Labels of a JSONL file, one a line. Raises DataError with file and line for a line that is none."""
    return tuple(label for _, label in validate_lines(Label, path, "a label"))


def print_metrics(
    store: TurnStore,
    since: float | None,
    tenant: str | None,
    labels: Sequence[Label] = (),
    *,
    as_json: bool = False,
) -> int:
    """Prints every metric, then every alert; returns 1 when there is one."""
    summary = metrics(store, since, tenant, labels)
    fired = alerts(store.tally(tenant, since).mismatches)
    for row in summary.rows():
        value = row["value"]
        cell = str(value)
        if value is None:
            cell = "-"
        elif isinstance(value, float):
            cell = f"{value:.4g}"
        if "low" in row:
            cell += f" [{row['low']:.4g}, {row['high']:.4g}]"
        line = f"{row['metric']:62} {row['of']:28} {cell:>10}"
        print(json.dumps(row) if as_json else line)
    for alert in fired:
        turns = ", ".join(alert.turn_ids)
        line = f"ALERT {alert.metric}: {alert.count} within 5 minutes, in turns {turns}"
        print(json.dumps({"alert": alert.model_dump()}) if as_json else line)
    # A job that runs by the clock learns from the exit code that somebody has to look.
    return int(bool(fired))
