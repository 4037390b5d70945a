"""`kit data metrics`, `drift`, `cases`, `status-replay`: what is said of stored turns."""

import time
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.core.display.count import many

if TYPE_CHECKING:
    from kit.stores.protocol import Store


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
    metrics.add_argument(
        "--judge", action="store_true", help="label every turn by rules, where no label is given"
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
    drift.add_argument(
        "--judge", action="store_true", help="label the sheet by rules; else a person fills it in"
    )
    drift.add_argument("--cases", type=Path, help="the evaluation's labelled cases")
    drift.add_argument("--predictions", type=Path, help="what the command route made of them")
    drift.set_defaults(run=_drift)

    cases = commands.add_parser(
        "cases", help="write the turns with a thumb down as cases that a grid plays"
    )
    cases.add_argument("file", type=Path, help="JSONL, a case a line (docs/cases.md)")
    cases.add_argument("--tenant", help="of one tenant (default: all)")
    cases.set_defaults(run=_cases)

    replay = commands.add_parser(
        "status-replay",
        help="replay a stored turn under six status policies: its lines and silences",
    )
    replay.add_argument("store", type=Path, help="the SQLite file, such as .kit/kit.db")
    replay.add_argument(
        "turn", nargs="?", help="id of the turn (default: the newest that asked a sub-agent)"
    )
    replay.set_defaults(run=_status_replay)


def _metrics(arguments: Namespace) -> int:
    from kit.bench.metrics_report import print_metrics, read_labels
    from kit.bench.scoring.labeller import RuleLabeller, label_store

    labels = list(read_labels(arguments.labels) if arguments.labels else ())
    since = _since(arguments)
    with _store() as store:
        if arguments.judge:
            ids = {label.turn_id for label in labels}
            # A label that somebody gave goes before what the rules say.
            for label in label_store(store, RuleLabeller.read(), since, arguments.tenant):
                if label.turn_id not in ids:
                    labels.append(label)
        return print_metrics(store, since, arguments.tenant, labels, as_json=arguments.json)


def _drift(arguments: Namespace) -> int:
    from kit.bench.drift import print_drift
    from kit.bench.scoring.labeller import RuleLabeller, draw

    if arguments.cases or arguments.predictions:
        return print_drift(arguments.sheet, arguments.cases, arguments.predictions)
    judge = RuleLabeller.read() if arguments.judge else None
    with _store() as store:
        sheet = draw(
            store,
            arguments.sheet,
            arguments.per,
            arguments.seed,
            _since(arguments) or 0.0,
            arguments.tenant,
            judge,
        )
    unlabelled = sum(item.open for item in sheet)
    print(f"{many(len(sheet), 'turn')}, {unlabelled} to be labelled -> {arguments.sheet}")
    return 0


def _cases(arguments: Namespace) -> int:
    from kit.bench.feedback_cases import write_cases

    with _store() as store:
        count = write_cases(store, arguments.file, arguments.tenant)
    print(f"{many(count, 'case')} of turns with a thumb down -> {arguments.file}")
    if count:
        return 0
    return 1


def _status_replay(arguments: Namespace) -> int:
    from kit.bench.status_replay import print_comparison

    return print_comparison(arguments.store, arguments.turn)


def _since(arguments: Namespace) -> float | None:
    if arguments.hours is None:
        return None
    return time.time() - 3600 * arguments.hours


def _store() -> "closing[Store]":
    from kit.settings import Settings
    from kit.stores.opening import open_store

    return closing(open_store(Settings.read().store))
