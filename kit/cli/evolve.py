"""`kit evolve`: a card's new version beside the one in place, what was judged of both, and the way forward or back."""

import asyncio
import getpass
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kit.cli.options import COMMAND, deck_option, open_stored, read_deck
from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.errors import DeckError

if TYPE_CHECKING:
    from kit.bench.promotion import CardChange, Promotion
    from kit.compose.deck import Deck
    from kit.core.card import AgentCard
    from kit.core.context import Principal
    from kit.metrics.judgement import Judgement
    from kit.settings import Settings
    from kit.wire import Kit

T = TypeVar("T")


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    evolve = commands.add_parser(
        "evolve", help="change a card in production: share its sessions, decide, promote, roll back"
    ).add_subparsers(required=True, metavar=COMMAND)
    _add(evolve, "status", "who is on which version, and what was judged so far", _status)
    decide = _add(evolve, "decide", "may a card's new version take its place?", _decide)
    decide.add_argument("card")
    promote = _add(
        evolve,
        "promote",
        "put a card's new version in its place, where nothing speaks against it",
        _promote,
    )
    promote.add_argument("card")
    back = _add(
        evolve,
        "rollback",
        "take a new version away, or a card or block back to a git revision",
        _rollback,
    )
    back.add_argument("part", help="id of the card or block")
    back.add_argument(
        "--to", metavar="REV", help="revision to go back to (default: take the new version away)"
    )
    back.add_argument("--key", help="go back with this key of the file alone, such as sub_agents")


def _add(commands: Any, name: str, words: str, run: Callable[[Namespace], int]) -> Any:
    parser = commands.add_parser(name, help=words)
    deck_option(parser)
    parser.set_defaults(run=run)
    return parser


def _status(arguments: Namespace) -> int:
    from kit.bench.canary import decide, gates_of
    from kit.bench.promotion import card_changes, obstacles
    from kit.compose.canary import canary_of, newest_of, version_of, with_next
    from kit.metrics.judgement import judgements, turns_shed

    settings, _, deck = read_deck(arguments.deck)
    if not deck.next_cards:
        print(f"no card of {deck.name} has a new version")

    async def read() -> "tuple[list[Judgement], int, list[CardChange]]":
        with open_stored(settings) as store:
            events = store.open_documents().events
            verdicts = await judgements(events) if deck.next_cards else []
            return verdicts, await turns_shed(events), await card_changes(events)

    verdicts, shed, changes = asyncio.run(read())
    for card_id in deck.next_cards:
        old = version_of(card_id, deck)
        new = version_of(card_id, with_next(deck, [card_id]))
        print(
            f"{card_id}: {canary_of(deck, card_id).share:.1%} of the sessions have {new}, the others {old}"
        )
        gates = gates_of(deck, card_id, verdicts)
        for gate in gates:
            print(f"  {gate}")
        _say_what_a_rule_sees(newest_of(deck, card_id))
        print(f"  {decide(gates)}")
        for obstacle in obstacles(deck, newest_of(deck, card_id)):
            print(f"  not yet: {obstacle}")
    if shed:
        print(f"not judged, for the judges were behind: {many(shed, 'turn')}")
    for change in changes:
        moment = time.strftime("%Y-%m-%d %H:%M", time.gmtime(change.at))
        print(f"{moment} UTC: {change}")
    return 0


def _decide(arguments: Namespace) -> int:
    from kit.bench.promotion import examine

    settings, _, deck = read_deck(arguments.deck)
    return _print_decision(_with_kit(settings, deck, lambda kit: examine(kit, arguments.card)))


def _with_kit(settings: "Settings", deck: "Deck", work: "Callable[[Kit], Awaitable[T]]") -> "T":
    """Opens a kit for a piece of work, and returns what this returns."""
    from kit.wire import open_kit

    async def run() -> "T":
        async with open_kit(settings, deck=deck) as kit:
            return await work(kit)

    return asyncio.run(run())


def _decider() -> str:
    """Who types the command."""
    try:
        return f"{getpass.getuser()} on the command line"
    except (KeyError, OSError):
        # A user of a container need not have a name.
        return "somebody on the command line"


def _say_what_a_rule_sees(card: "AgentCard") -> None:
    if card.eval is not None and card.eval.judge == "rule":
        print(
            f"  {card.id} is judged by a rule: it sees what failed, leaked or was made up, and not whether an "
            "answer is right; let a model judge where that matters (`eval`)"
        )


def _print_decision(verdict: "Promotion") -> int:
    from kit.bench.canary import decide

    if not verdict.promoted:
        print(*verdict.faults, sep="\n")
        if decide(verdict.gates) == "roll back":
            print(f"go back: {command('evolve', 'rollback', verdict.card.id)}")
        return 1
    print(*verdict.gates, sep="\n")
    _say_what_a_rule_sees(verdict.card)
    print(f"{verdict.card.id} may go live in version {verdict.card.version}")
    return 0


def _promote(arguments: Namespace) -> int:
    from kit.bench.promotion import put_in_place
    from kit.compose.canary import gained_tools

    settings, folder, deck = read_deck(arguments.deck)
    card_id = arguments.card

    def promote(kit: "Kit") -> "Awaitable[Promotion]":
        return put_in_place(kit, folder, card_id, kit.session("").principal, _decider())

    verdict = _with_kit(settings, deck, promote)
    code = _print_decision(verdict)
    if code == 0:
        print(
            f"the file of {card_id} holds version {verdict.card.version} now, and that of its new version is gone: "
            "commit both"
        )
        for tool in gained_tools(deck.cards[card_id], verdict.card):
            print(f"turn on the flag {verdict.card.tool_grants[tool].flag!r} of the tool {tool!r}")
    return code


def _take_away(arguments: Namespace, folder: Path) -> int:
    from kit.bench.promotion import take_away
    from kit.settings import Settings

    settings = Settings.read()
    version = ""
    # A new version with which the deck cannot be loaded is taken away all the same.
    with suppress(DeckError):
        _, _, deck = read_deck(arguments.deck)
        if arguments.part in deck.next_cards:
            version = deck.next_cards[arguments.part].version
    who = _principal(settings, arguments.deck)

    async def take() -> Path:
        with open_stored(settings) as store:
            events = store.open_documents().events
            return await take_away(events, folder, arguments.part, version, who, _decider())

    newer = asyncio.run(take())
    print(f"{newer.name} is gone: every session has the version in place")
    return 0


def _principal(settings: "Settings", folder: Path | None) -> "Principal":
    """Whose decision it is: the settings' own user, else the visitor of a deck that can be loaded."""
    from kit.compose.parts import Visitor
    from kit.core.context import Principal

    visitor = Visitor()
    with suppress(DeckError):
        _, _, deck = read_deck(folder)
        visitor = deck.settings.visitor
    return Principal(
        tenant_id=settings.tenant or visitor.tenant_id, user_id=settings.user or visitor.user_id
    )


def _rollback(arguments: Namespace) -> int:
    import difflib

    from kit.bench.promotion import note_return
    from kit.compose.revision import check_clean, part_at
    from kit.settings import Settings

    settings = Settings.read()
    folder = Path(arguments.deck or settings.deck)
    if arguments.to is None:
        return _take_away(arguments, folder)
    path, text = part_at(folder, arguments.part, arguments.to, arguments.key)
    check_clean(path)
    now = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        now.splitlines(keepends=True),
        text.splitlines(keepends=True),
        path.name,
        f"{path.name} at {arguments.to}",
    )
    difference = "".join(lines)
    if not difference:
        print(f"{path.name} is as it was at {arguments.to}")
        return 0
    print(difference, end="")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    part = arguments.part if arguments.key is None else f"{arguments.part}, {arguments.key}"
    who = _principal(settings, folder)

    async def note() -> None:
        with open_stored(settings) as store:
            events = store.open_documents().events
            await note_return(events, part, arguments.to, who, _decider())

    asyncio.run(note())
    try:
        read_deck(folder)
    except DeckError as error:
        print(f"{path} is written, and the deck cannot be used with it:", *error.faults, sep="\n")
        return 1
    print(f"{path} is written: commit it")
    return 0
