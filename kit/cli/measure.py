"""`kit route`, `cards routing`, `grid`: models, prompts and patterns compared."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.cli.options import cases_argument, deck_option, taping
from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.errors import SettingsError, UnknownId
from kit.core.model import OFFLINE

if TYPE_CHECKING:
    from kit.runtime.team import Model
    from kit.settings import Settings

MARGIN: dict[str, Any] = {
    "metavar": "D",
    "help": "the difference too small to matter, such as 0.05 of every score, or MEASURE=D; "
    "ways that surely differ by less are called equivalent",
}


def add(commands: Any) -> None:
    """Adds the commands to a parser's."""
    _add_route(commands)
    _add_grid(commands)


def _add_route(commands: Any) -> None:
    route = commands.add_parser(
        "route", help="route a case file over a catalogue; predictions, one turn a line"
    )
    cases_argument(route, "dialogues, labelled or not")
    route.add_argument(
        "--catalog",
        type=Path,
        help='JSON, {"sub_agents": [{"id", "description"}]} (default: the cards of the settings\' deck)',
    )
    route.add_argument(
        "--out", type=Path, required=True, help="file of the predictions; it is written anew"
    )
    route.add_argument(
        "--model", default=OFFLINE.key, help="key of models.yaml (default: the offline stand-in)"
    )
    route.set_defaults(run=_route)


def add_to_cards(commands: Any) -> None:
    """Adds the command of the group `cards`."""
    routing = commands.add_parser(
        "routing", help="which card's description loses which questions of labelled dialogues"
    )
    deck_option(routing, "deck")
    cases_argument(routing)
    routing.set_defaults(run=_deck_routing)


def _add_grid(commands: Any) -> None:
    grid = commands.add_parser(
        "grid",
        help="models x prompts x patterns x cases as a file says; goes on where it was stopped",
    )
    grid.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE.yaml",
        help="default: grid.yaml of the project worked in",
    )
    grid.add_argument(
        "--out",
        type=Path,
        help="folder of ledger and results (default: .kit/grids/<name>, where a changed grid "
        "writes its results over the last ones: --out keeps both)",
    )
    grid.add_argument(
        "--traces",
        action="store_true",
        help="keep every turn in traces.db of that folder; always so with Opik",
    )
    grid.add_argument(
        "--workers", type=int, help="processes (default: one a core, for large simulated grids)"
    )
    grid.add_argument(
        "--on",
        metavar="dask://HOST:8786",
        help="play on the workers of that Dask cluster, which use their own keys",
    )
    grid.add_argument(
        "--cost",
        action="store_true",
        help="play nothing: say what a cell costs beside its turn, in calls and CPU; in a checkout alone",
    )
    grid.add_argument(
        "--model", help="takes the place of every model of the file but the baseline's"
    )
    grid.add_argument("--margin", action="append", default=[], type=margin, **MARGIN)
    taping(grid)
    grid.set_defaults(run=grid_command)


def _route(arguments: Namespace) -> int:
    from kit.bench.routing import catalog_of, read_catalog, route_file
    from kit.compose.deck import load_deck
    from kit.settings import Settings, own_cases

    settings = Settings.read()
    if arguments.catalog is None:
        catalog = catalog_of(load_deck(settings.deck))
    else:
        catalog = read_catalog(arguments.catalog)
    cases = arguments.cases or own_cases()
    model = _model_of(arguments.model, settings)
    count = asyncio.run(route_file(cases, catalog, arguments.out, model))
    name = "the offline stand-in" if arguments.model == OFFLINE.key else arguments.model
    print(f"{many(count, 'turn')} routed by {name} -> {arguments.out}")
    return 0


def _model_of(key: str, settings: "Settings") -> "Model":
    """Builds the model of the settings' deck that a key names. Raises UnknownId."""
    from kit.compose.deck import load_deck
    from kit.compose.models import build_model
    from kit.team_binder import access_of

    if key == OFFLINE.key:
        return key
    folder = Path(settings.deck)
    specs = load_deck(folder).models
    if key not in specs:
        raise UnknownId("model of models.yaml", key, specs)
    access = replace(access_of(settings), pace=0.0)
    return build_model(specs[key], access, folder=folder), specs[key]


def _deck_routing(arguments: Namespace) -> int:
    from kit.bench.deck_routing import print_report
    from kit.settings import Settings, own_cases

    deck = arguments.deck or Settings.read().deck
    return print_report(deck, arguments.cases or own_cases())


def grid_command(arguments: Namespace) -> int:
    from kit.bench.grid.forecast import announce
    from kit.bench.grid.grid_cassette import drop_stale_tracks, with_cassette
    from kit.bench.grid.grid_file import read_grid
    from kit.bench.grid.player import Opener
    from kit.bench.grid.report import report
    from kit.bench.grid.run import Bar, run_grid, what_is_kept
    from kit.bench.statistics.verdict import check_margin
    from kit.experiment_kits import ExperimentKits, WorkerKits
    from kit.settings import Settings, own_project

    file: Path | None = arguments.file
    if file is None:
        project = own_project()
        if project is None:
            raise SettingsError(
                f"name the grid's file; only in a project that `{command('new')}` made it is grid.yaml"
            )
        file = project / "grid.yaml"
    spec = read_grid(file, arguments.model)
    settings = Settings.read()
    if arguments.margin:
        check_margin(margins(arguments.margin), spec.grid.verdicts)
        grid = spec.grid.model_copy(update={"margin": margins(arguments.margin)})
        spec = replace(spec, grid=grid)
    folder = arguments.out or settings.grids / spec.grid.name
    spec, cassette = with_cassette(spec, arguments.cassette, arguments.mode, folder, file)
    kits = ExperimentKits.of(settings, virtual=spec.virtual, cassette=cassette)
    if arguments.cost:
        require_checkout("what a cell costs", "benchmarks/cell_cost.py")
        from benchmarks.cell_cost import show_costs

        return show_costs(spec, kits)
    opener: Opener = kits
    if arguments.on:
        # No key travels: each worker reads its own environment.
        opener = WorkerKits(spec.virtual)
    else:
        spec = spec.at(kits.access)
    traces = arguments.traces or (kits.has_opik and not arguments.on)
    sentence = announce(spec)
    if sentence:
        print(sentence, file=sys.stderr)
    try:
        with Bar() as bar:
            run = run_grid(
                spec, folder, opener, arguments.workers, bar, traces=traces, on=arguments.on
            )
    except KeyboardInterrupt:
        print(f"kit: stopped: {what_is_kept(spec, folder)}", file=sys.stderr)
        return 2
    if run.complete:
        drop_stale_tracks(spec, cassette)
    print(report(spec, run))
    print(f"{run}; results in {folder}")
    if kits.has_opik and not arguments.on:
        from kit.bench.grid.experiment import copy_to_opik

        print(copy_to_opik(spec, run, kits.opik()))
    if run.complete:
        return 0
    return 1


def margin(text: str) -> tuple[str, float]:
    """`0.05`, or `seconds=0.5`. Raises ValueError, which argparse turns into a sentence."""
    measure, _, figure = text.rpartition("=")
    value = float(figure)
    if not value > 0:
        raise ValueError(text)
    return measure, value


def margins(pairs: Sequence[tuple[str, float]]) -> float | dict[str, float] | None:
    """One figure is that of every score, others are by measure. Raises SettingsError for both at once."""
    margins = dict(pairs)
    if "" not in margins:
        return margins or None
    if len(pairs) > 1:
        raise SettingsError(
            "--margin is one figure for every score, or MEASURE=D, as often as needed"
        )
    return margins[""]


def require_checkout(subject: str, where: str, hint: str = "") -> None:
    """Raises SettingsError in an installed kit, which has no benchmarks."""
    from kit.home import IS_CHECKOUT

    if not IS_CHECKOUT:
        raise SettingsError(
            f"{subject} is measured by {where}, which only a checkout of the repository has{hint}"
        )
