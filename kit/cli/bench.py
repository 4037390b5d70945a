"""`kit bench`: whole systems on the same cases; without a system, what a turn costs in a checkout."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.cli.measure import MARGIN, grid_command, margin, margins, require_checkout
from kit.core.errors import SettingsError

if TYPE_CHECKING:
    from kit.bench.grid.grid_file import GridSpec
    from kit.bench.grid.run import Run


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    bench = commands.add_parser(
        "bench",
        help="whole systems on the same cases, without cards; without one: what a turn costs, in a checkout",
    )
    bench.add_argument(
        "system",
        nargs="?",
        metavar="SYSTEM",
        help="./FILE.py:NAME, PACKAGE.MODULE:NAME, https://..., or 'command:PROGRAM ARGUMENTS'",
    )
    bench.add_argument(
        "cases",
        nargs="?",
        type=Path,
        metavar="CASES",
        help=".csv, .jsonl or .parquet: message, expected_text, expected_agents, cluster, id "
        "(default: the project's cases.jsonl)",
    )
    bench.add_argument(
        "--against", metavar="SYSTEM", help="another one, which the first is compared with"
    )
    bench.add_argument(
        "--judge",
        action="append",
        default=[],
        metavar="./FILE.py:NAME",
        help="a function (case, observation) that scores each answer: 0 to 1, or None",
    )
    bench.add_argument("--repeats", type=int, default=1, metavar="N", help="each case so often")
    bench.add_argument("--margin", action="append", default=[], type=margin, **MARGIN)
    bench.add_argument(
        "--dollars", type=float, metavar="D", help="no case is begun once so much is spent"
    )
    bench.add_argument(
        "--concurrency", type=int, metavar="N", help="answers waited for at a time (default: 4)"
    )
    bench.add_argument(
        "--seconds", type=float, metavar="S", help="how long an answer may take (default: 120)"
    )
    bench.add_argument(
        "--stop-when-decided",
        action="store_true",
        help="begin no case once every verdict is settled, by the test that holds at any look",
    )
    bench.add_argument("--json", action="store_true", help="the result as one JSON object")
    bench.add_argument(
        "--out", type=Path, metavar="FOLDER", help="ledger and results (default: .kit/grids/<name>)"
    )
    bench.add_argument(
        "--gate",
        action="store_true",
        help="without a system: fail when a turn makes more Python calls than it may",
    )
    bench.add_argument(
        "--model",
        help="without a system: data/grids/paid.yaml with this model of models.yaml, which needs a key",
    )
    bench.set_defaults(run=_bench)


def _bench(arguments: Namespace) -> int:
    if arguments.system is None:
        return _turn_cost(arguments)
    from kit.bench.grid.forecast import announce
    from kit.bench.grid.report import report
    from kit.bench.grid.run import Bar, run_grid, what_is_kept
    from kit.experiment_kits import ExperimentKits
    from kit.settings import Settings

    settings = Settings.read()
    spec = _spec(arguments)
    folder: Path = arguments.out or settings.grids / spec.grid.name
    kits = ExperimentKits.of(settings, virtual=False)
    print(announce(spec), file=sys.stderr)
    try:
        with Bar() as bar:
            run = run_grid(spec, folder, kits, 1, bar, say=_say)
    except KeyboardInterrupt:
        print(f"kit: stopped: {what_is_kept(spec, folder)}", file=sys.stderr)
        return 2
    text = report(spec, run)
    if arguments.json:
        print(json.dumps(_result(spec, run), indent=1))
    else:
        print(text)
        print(f"{run}; results in {folder}")
    if run.complete or run.decided:
        return 0
    return 1


def _spec(arguments: Namespace) -> "GridSpec":
    from kit.bench.systems.bench import load_judges, systems_spec
    from kit.bench.systems.source import read_source
    from kit.settings import own_project

    cases: Path | None = arguments.cases
    if cases is None:
        project = own_project()
        if project is None:
            raise SettingsError("name the file of cases, such as cases.csv")
        cases = project / "cases.jsonl"
    here = Path.cwd()
    systems = [read_source(arguments.system, arguments.system, here)]
    if arguments.against:
        name: str = arguments.against
        if name == arguments.system:
            name += " (again)"
        systems.append(read_source(name, arguments.against, here))
    limits: dict[str, Any] = {}
    for field in ("dollars", "concurrency", "seconds"):
        value = getattr(arguments, field)
        if value is not None:
            limits[field] = value
    if arguments.stop_when_decided:
        limits["when_decided"] = True
    return systems_spec(
        systems,
        cases,
        judges=load_judges(arguments.judge, here),
        repeats=arguments.repeats,
        margin=margins(arguments.margin),
        limits=limits,
        name=_name(systems[0].name, cases),
    )


def _say(sentence: str) -> None:
    print(f"\r{sentence}\x1b[K" if sys.stderr.isatty() else sentence, file=sys.stderr)


def _name(system: str, cases: Path) -> str:
    """A name that a folder may have: `bench-mine-answer-cases`."""
    letters = [letter if letter.isalnum() else "-" for letter in f"bench-{system}-{cases.stem}"]
    return "-".join(filter(None, "".join(letters).replace("-py-", "-").split("-")))[:80]


def _result(spec: "GridSpec", run: "Run") -> dict[str, Any]:
    from kit.bench.grid.failures import read_failures
    from kit.bench.grid.report import compare_run, uncompared
    from kit.bench.grid.results import Results

    grid = spec.grid
    ways, verdicts = compare_run(spec, run.folder)
    rows = Results(run.folder)
    failures = read_failures(run.folder)
    return {
        "name": grid.name,
        "folder": str(run.folder),
        "cells": run.total,
        "played": run.before + run.done,
        "failed": run.failed,
        # A sum of nothing that anybody told is not known, and no 0.
        "dollars": run.dollars or None,
        "stopped": run.stopped,
        "decided": run.decided,
        "ways": [way.model_dump(mode="json") for way in ways],
        "verdicts": [_verdict(verdict) for verdict in verdicts],
        "uncompared": uncompared(ways, verdicts, rows, failures, grid.baseline, grid.verdicts),
    }


def _verdict(verdict: Any) -> dict[str, Any]:
    return {**verdict.model_dump(mode="json"), "words": verdict.words, "sentence": str(verdict)}


def _turn_cost(arguments: Namespace) -> int:
    from kit.compose.models import load_models
    from kit.settings import HOME, Settings

    if arguments.model is None:
        require_checkout(
            "what a turn costs",
            "benchmarks/turn_cost",
            "; `bench SYSTEM CASES` and `--model KEY` work without one",
        )
        from benchmarks.turn_cost.measure import report

        return report(gate=arguments.gate)
    spec = load_models(HOME / "cards" / "models.yaml")[arguments.model]
    if not (Settings.read().has_model or spec.is_self_contained):
        raise SettingsError(
            f"{arguments.model!r} cannot be asked without a key: set OPENAI_API_KEY and run this again"
        )
    # A paid model is recorded: the run can be played again without a key.
    file = HOME / "data" / "grids" / "paid.yaml"
    usual: dict[str, Any] = dict.fromkeys(("out", "workers", "cassette", "on"))
    usual |= {"traces": False, "cost": False, "margin": []}
    return grid_command(Namespace(file=file, model=arguments.model, mode="record", **usual))
