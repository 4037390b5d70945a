"""`kit data metrics`, `drift`, `cases`: what is said of stored turns."""

import time
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.cli.options import check_tenant, open_existing
from kit.core.display.count import many
from kit.core.errors import DataError

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore


def add_to_data(commands: Any) -> None:
    """Adds the commands of the group `data`."""
    metrics = commands.add_parser(
        "metrics", help="what the stored turns add up to, and whether the alert fires"
    )
    metrics.add_argument("--json", action="store_true", help="one row a line")
    metrics.add_argument("--tenant", help="of one tenant (default: all)")
    metrics.add_argument("--hours", type=float, help="of the last hours (default: ever)")
    metrics.add_argument(
        "--labels",
        type=Path,
        help="JSONL of labelled turns: adds routing accuracy, recall and scores",
    )
    metrics.set_defaults(run=_metrics)

    drift = commands.add_parser(
        "drift",
        help="sample stored turns onto a labelling sheet; with --cases, compare a labelled one",
    )
    drift.add_argument(
        "sheet", type=Path, help="JSONL, one turn a line, each with the label to fill in"
    )
    drift.add_argument(
        "--per", type=int, default=30, help="most turns of each sub-agent (default: 30)"
    )
    drift.add_argument("--seed", type=int, default=7)
    drift.add_argument("--tenant", help="of one tenant (default: all)")
    drift.add_argument("--hours", type=float, help="of the last hours (default: ever)")
    drift.add_argument("--cases", type=Path, help="the evaluation's labelled cases")
    drift.add_argument("--predictions", type=Path, help="what the command route made of them")
    drift.set_defaults(run=_drift)

    cases = commands.add_parser(
        "cases", help="write the turns with a thumb down as cases that a grid plays"
    )
    cases.add_argument("file", type=Path, help="JSONL, a case a line (docs/cases.md)")
    cases.add_argument("--tenant", help="of one tenant (default: all)")
    cases.set_defaults(run=_cases)


def _metrics(arguments: Namespace) -> int:
    from kit.bench.metrics_report import print_metrics, read_labels

    labels = read_labels(arguments.labels) if arguments.labels else ()
    since = _since(arguments)
    with _store() as store:
        check_tenant(store, arguments.tenant)
        return print_metrics(store, since, arguments.tenant, labels, as_json=arguments.json)


def _drift(arguments: Namespace) -> int:
    from kit.bench.drift import print_drift
    from kit.bench.scoring.labelling_sheet import items, write_sheet

    if arguments.cases or arguments.predictions:
        return print_drift(arguments.sheet, arguments.cases, arguments.predictions)
    path: Path = arguments.sheet
    if path.exists():
        raise DataError(f"{path} is there already and may hold labels; name another file")
    since = _since(arguments) or 0.0
    with _store() as store:
        check_tenant(store, arguments.tenant)
        sheet = items(store, arguments.per, arguments.seed, since, arguments.tenant)
    write_sheet(path, sheet)
    print(f"{many(len(sheet), 'turn')} to be labelled -> {path}")
    return 0


def _cases(arguments: Namespace) -> int:
    from kit.bench.feedback_cases import write_cases

    with _store() as store:
        check_tenant(store, arguments.tenant)
        count = write_cases(store, arguments.file, arguments.tenant)
    print(f"{many(count, 'case')} of turns with a thumb down -> {arguments.file}")
    if count:
        return 0
    return 1


def _since(arguments: Namespace) -> float | None:
    if arguments.hours is None:
        return None
    return time.time() - 3600 * arguments.hours


def _store() -> "closing[TurnStore]":
    from kit.settings import Settings

    return open_existing(Settings.read())
