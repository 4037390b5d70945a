"""`python -m kit ...`: thin; each command imports what it needs. Faults end as one sentence and exit code 2."""

import argparse
import asyncio
import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.core.errors import KitError

if TYPE_CHECKING:
    from kit.runtime.turn import Reply, Turn
    from kit.stores.protocol import Store

Arguments = argparse.Namespace


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0, 1 (the answer is no) or 2 (it could not be done, and stderr says why)."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KitError as error:
        print(f"kit: {error}", file=sys.stderr)
    except OSError as error:
        print(f"kit: {error.strerror or error}: {error.filename or ''}".rstrip(": "), file=sys.stderr)
    except KeyboardInterrupt:
        print("kit: stopped", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kit", description="Orchestrate LLM sub-agents from declarative cards.")
    commands = parser.add_subparsers(required=True, metavar="command")

    ask = commands.add_parser("ask", help="ask the deck one question; the answer streams with its steps")
    ask.add_argument("message", help="the question; - reads it from standard input")
    ask.add_argument("--json", action="store_true", help="one event a line, the reply last")
    ask.add_argument("--session", default="cli", help="conversation to go on with (default: cli)")
    ask.add_argument("--pattern", help="how the turn is orchestrated (default: mediated)")
    ask.add_argument("--surface", help="which of the deck's topologies hold (default: the deck's own)")
    ask.add_argument("--cap", type=int, help="most sub-agents one turn may call (default: the deck's)")
    ask.add_argument(
        "--fault", action="append", default=[], metavar="AGENT=KIND", help="make a part fail, such as rewards=timeout; repeatable"
    )
    ask.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="FILE",
        help="a picture to send with it: PNG, JPEG, WebP or GIF; repeatable",
    )
    ask.set_defaults(run=_ask)

    check = commands.add_parser("check", help="load and bind a deck; every fault in one report")
    check.add_argument("deck", type=Path, nargs="?", help="folder of the deck (default: the settings')")
    check.set_defaults(run=_check)

    gained = commands.add_parser("gained", help="which agent gained which tool between two git revisions of the cards")
    gained.add_argument("old", metavar="REV1")
    gained.add_argument("new", metavar="REV2")
    gained.add_argument("--deck", type=Path, help="folder of the deck (default: the settings')")
    gained.set_defaults(run=_gained)

    schema = commands.add_parser("schema", help="the JSON Schema of an agent card, for editors")
    schema.set_defaults(run=_schema)

    route = commands.add_parser("route", help="route a case file over a catalogue; predictions, one turn a line")
    route.add_argument("cases", type=Path)
    route.add_argument("--catalog", type=Path, required=True)
    route.add_argument("--out", type=Path, required=True)
    route.set_defaults(run=_route)

    upstream = commands.add_parser("upstream", help="serve the embedded upstream services over a socket")
    upstream.add_argument("--host", default="127.0.0.1")
    upstream.add_argument("--port", type=int, default=8800)
    upstream.set_defaults(run=_upstream)

    grid = commands.add_parser("grid", help="models x prompts x patterns x cases as a file says; goes on where it was stopped")
    grid.add_argument("plan", type=Path, metavar="FILE.yaml")
    grid.add_argument("--out", type=Path, help="folder of ledger and results (default: .kit/grids/<name>)")
    grid.add_argument("--workers", type=int, help="processes (default: one a core, for large simulated grids)")
    grid.set_defaults(run=_grid)

    bench = commands.add_parser("bench", help="cost of a turn beside a hand-written loop, one interleaved run")
    bench.add_argument("--gate", action="store_true", help="fail above 1.5 times the hand loop's Python calls")
    bench.set_defaults(run=_bench)
    _over_stored_turns(commands)
    return parser


def _over_stored_turns(commands: Any) -> None:
    metrics = commands.add_parser("metrics", help="what the stored turns add up to, and whether the alert fires")
    metrics.add_argument("--json", action="store_true", help="one row a line")
    metrics.add_argument("--tenant", help="of one tenant (default: all)")
    metrics.add_argument("--hours", type=float, help="of the last hours (default: ever)")
    metrics.add_argument("--labels", type=Path, help="JSONL of labelled turns: adds routing accuracy, recall and scores")
    metrics.add_argument("--judge", action="store_true", help="label every turn by rules, where no label is given")
    metrics.set_defaults(run=_metrics)

    drift = commands.add_parser("drift", help="sample stored turns onto a labelling sheet; with --cases, compare a labelled one")
    drift.add_argument("sheet", type=Path, help="JSONL, one turn a line, each with the label to fill in")
    drift.add_argument("--per", type=int, default=30, help="most turns of each sub-agent (default: 30)")
    drift.add_argument("--seed", type=int, default=7)
    drift.add_argument("--tenant", help="of one tenant (default: all)")
    drift.add_argument("--hours", type=float, help="of the last hours (default: ever)")
    drift.add_argument("--judge", action="store_true", help="label the sheet by rules; else a person fills it in")
    drift.add_argument("--cases", type=Path, help="the evaluation's labelled cases")
    drift.add_argument("--predictions", type=Path, help="what `kit route` made of them")
    drift.set_defaults(run=_drift)


def _ask(arguments: Arguments) -> int:
    message = sys.stdin.read() if arguments.message == "-" else arguments.message
    reply = asyncio.run(_ask_turn(message, arguments))
    return 0 if reply.status == "ok" else 1


async def _ask_turn(message: str, arguments: Arguments) -> "Reply":
    from kit.runtime.message import read_picture
    from kit.wire import open_kit

    images = [read_picture(path) for path in arguments.image]
    async with open_kit(faults=bool(arguments.fault)) as kit:
        session = kit.session(arguments.session)
        turn = kit.ask(message, session, arguments.pattern, arguments.cap, arguments.fault, images, arguments.surface)
        if arguments.fault and not arguments.json:
            print("made to fail: " + ", ".join(arguments.fault), flush=True)
        await (_print_events(turn) if arguments.json else _print_story(turn, kit.model))
        reply = await turn
    if arguments.json:
        print(json.dumps(_reply_line(reply)), flush=True)
    return reply


async def _print_events(turn: "Turn") -> None:
    async for event in turn:
        print(event.model_dump_json(), flush=True)


async def _print_story(turn: "Turn", model: str) -> None:
    from kit.ui.terminal import Story

    story = Story(sys.stdout, model)
    async for event in turn:
        story.tell(event)


def _reply_line(reply: "Reply") -> dict[str, object]:
    outcomes: list[dict[str, object]] = []
    for outcome in reply.outcomes:
        told = {"ok": True} if outcome.kind == "answer" else {"ok": False, "reason": outcome.reason}
        outcomes.append({"agent": outcome.agent, **told})
    return {
        "kind": "reply",
        "turn_id": reply.turn_id,
        "status": reply.status,
        "outcomes": outcomes,
        "routing": reply.routing.model_dump(mode="json"),
        "usage": reply.usage.model_dump(mode="json"),
        "preamble": reply.preamble,
        "text": reply.text,
    }


def _check(arguments: Arguments) -> int:
    from kit.compose.deck import load_deck
    from kit.settings import Settings
    from kit.tools.toolbox import TOOL_IDS

    settings = Settings.read()
    deck = load_deck(arguments.deck or settings.deck, TOOL_IDS, environment=settings.environment)
    for warning in deck.warnings:
        print(f"warning: {warning}")
    for card in deck.active():
        policy = deck.policy(card)
        print(
            f"{card.id:18} {card.model:20} {len(card.tools)} tools, {len(card.sub_agents)} sub-agents, {policy.time_budget_ms} ms"
        )
    has = deck.settings
    print(f"time: {has.turn_budget_ms} ms a turn, {has.model_call_budget_ms} ms a model call of the orchestrator, ", end="")
    print(f"{has.helper_ms} ms a job of the helper model")
    print(
        f"{deck.name}: {len(deck.cards)} cards, {len(deck.blocks)} blocks, cap {deck.settings.cap}, {len(deck.warnings)} warnings"
    )
    return 0


def _gained(arguments: Arguments) -> int:
    from kit.compose.gained import print_gained
    from kit.settings import Settings

    return print_gained(Path(arguments.deck or Settings.read().deck), arguments.old, arguments.new)


def _schema(_: Arguments) -> int:
    from kit.core.card import AgentCard

    print(json.dumps(AgentCard.model_json_schema(), indent=2))
    return 0


def _route(arguments: Arguments) -> int:
    from kit.bench.routing import route_file

    done = asyncio.run(route_file(arguments.cases, arguments.catalog, arguments.out))
    print(f"{done} turns routed by the offline stand-in -> {arguments.out}")
    return 0


def _upstream(arguments: Arguments) -> int:
    from kit.settings import Settings
    from kit.upstream.serve import serve
    from kit.upstream.world import load_world

    settings = Settings.read()
    print(f"serving /context and /support on http://{arguments.host}:{arguments.port}", flush=True)
    serve(load_world(settings.data), arguments.host, arguments.port, key=settings.envelope_key)
    return 0


def _metrics(arguments: Arguments) -> int:
    from kit.bench.labeller import RuleLabeller, labels_of
    from kit.bench.report import print_metrics, read_labels

    labels, since = list(read_labels(arguments.labels) if arguments.labels else ()), _since(arguments)
    with _store() as store:
        if arguments.judge:
            given = {label.turn_id for label in labels}
            made = labels_of(store, RuleLabeller.read(), since, arguments.tenant)
            labels += [label for label in made if label.turn_id not in given]
        return print_metrics(store, since, arguments.tenant, labels, as_json=arguments.json)


def _drift(arguments: Arguments) -> int:
    from kit.bench.drift import print_drift
    from kit.bench.labeller import RuleLabeller, draw

    if arguments.cases or arguments.predictions:
        return print_drift(arguments.sheet, arguments.cases, arguments.predictions)
    judge = RuleLabeller.read() if arguments.judge else None
    with _store() as store:
        sheet = draw(store, arguments.sheet, arguments.per, arguments.seed, _since(arguments) or 0.0, arguments.tenant, judge)
    print(f"{len(sheet)} turns, {sum(item.open for item in sheet)} to be labelled -> {arguments.sheet}")
    return 0


def _since(arguments: Arguments) -> float | None:
    import time

    return None if arguments.hours is None else time.time() - 3600 * arguments.hours


@contextmanager
def _store() -> "Generator[Store]":
    from kit.settings import Settings
    from kit.wire import open_store

    store = open_store(Settings.read().store)
    try:
        yield store
    finally:
        store.close()


def _bench(arguments: Arguments) -> int:
    from kit.bench.overhead import report

    return report(gate=arguments.gate)


def _grid(arguments: Arguments) -> int:
    from functools import partial

    from kit.bench.findings import report
    from kit.bench.grid import Bar, run_grid
    from kit.bench.plan import read_plan
    from kit.settings import HOME, Settings
    from kit.wire import open_kit

    plan = read_plan(arguments.plan)
    settings = Settings.read().with_(store=":memory:", today="2026-11-01", **({"pace": 0.0} if plan.virtual else {}))
    folder = arguments.out or HOME / ".kit" / "grids" / plan.grid.name
    bar = Bar()
    try:
        run = run_grid(plan, folder, partial(open_kit, settings), arguments.workers, bar)
    finally:
        bar.end()
    print(report(plan, run), end="")
    print(f"\n{run.done:,} cells played, {run.before:,} were there; results in {folder}")
    return 0 if run.complete else 1
