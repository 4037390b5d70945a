"""`kit evolve`: a card's new version beside the one in place, what was judged of both, and the way forward or back."""

import asyncio
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.errors import DeckError
from kit.home import find_deck

if TYPE_CHECKING:
    from kit.bench.promotion import Promotion
    from kit.compose.deck import Deck
    from kit.metrics.judgement import Judgement
    from kit.settings import Settings


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    evolve = commands.add_parser(
        "evolve", help="change a card in production: share its sessions, decide, promote, roll back"
    ).add_subparsers(required=True, metavar="command")
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
    parser.add_argument(
        "--deck", type=find_deck, help="folder of the deck (default: the settings')"
    )
    parser.set_defaults(run=run)
    return parser


def _read(arguments: Namespace) -> "tuple[Settings, Path, Deck]":
    from kit.compose.deck import load_deck
    from kit.settings import Settings

    settings = Settings.read()
    folder = Path(arguments.deck or settings.deck)
    return settings, folder, load_deck(folder, (), environment=settings.environment)


def _check_shared(deck: "Deck", card_id: str) -> None:
    """Raises UnknownId for a card that has no new version."""
    from kit.core.errors import UnknownId

    if card_id not in deck.next_cards:
        raise UnknownId("card with a new version", card_id, deck.next_cards)


def _status(arguments: Namespace) -> int:
    from kit.bench.canary import decide, gates_of
    from kit.compose.canary import canary_of, version_of, with_next
    from kit.metrics.judgement import judgements, turns_shed
    from kit.stores.opening import open_store

    settings, _, deck = _read(arguments)
    if not deck.next_cards:
        print(f"no card of {deck.name} has a new version")
        return 0

    async def read() -> "tuple[list[Judgement], int]":
        with closing(open_store(settings.store, documents=settings.documents)) as store:
            events = store.open_documents().events
            return await judgements(events), await turns_shed(events)

    verdicts, shed = asyncio.run(read())
    for card_id in deck.next_cards:
        old = version_of(card_id, deck)
        new = version_of(card_id, with_next(deck, [card_id]))
        print(
            f"{card_id}: {canary_of(deck, card_id).share:.1%} of the sessions have {new}, the others {old}"
        )
        gates = gates_of(deck, card_id, verdicts)
        for gate in gates:
            print(f"  {gate}")
        print(f"  {decide(gates)}")
    if shed:
        print(f"not judged, for the judges were behind: {many(shed, 'turn')}")
    return 0


def _decide(arguments: Namespace) -> int:
    settings, _, deck = _read(arguments)
    return _print_decision(_decision(settings, deck, arguments.card))


def _decision(settings: "Settings", deck: "Deck", card_id: str) -> "Promotion":
    """Plays the tool cases of a card's new version, and sets what was judged of both against each other."""
    from kit.bench.canary import gates_of
    from kit.bench.promotion import promote
    from kit.bench.tool_cases import play_cases
    from kit.metrics.judgement import judgements
    from kit.patterns.agents_as_tools import MEDIATED
    from kit.wire import open_kit

    _check_shared(deck, card_id)

    async def trial() -> "Promotion":
        async with open_kit(settings, deck=deck) as kit:
            verdicts = await judgements(kit.store.open_documents().events)
            team = kit.stages.team(MEDIATED, newer=frozenset((card_id,)))
            tools = await play_cases(team, card_id)
        return promote(deck, card_id, tool_results=tools, gates=gates_of(deck, card_id, verdicts))

    return asyncio.run(trial())


def _print_decision(verdict: "Promotion") -> int:
    from kit.bench.canary import decide

    if not verdict.promoted:
        print(*verdict.faults, sep="\n")
        if decide(verdict.gates) == "roll back":
            print(f"go back: {command('evolve', 'rollback', verdict.card.id)}")
        return 1
    print(*verdict.gates, sep="\n")
    print(f"{verdict.card.id} may go live in version {verdict.card.version}")
    return 0


def _promote(arguments: Namespace) -> int:
    from kit.compose.canary import gained_tools
    from kit.compose.read import card_file, next_file
    from kit.compose.revision import check_clean

    settings, folder, deck = _read(arguments)
    _check_shared(deck, arguments.card)
    card = card_file(folder, arguments.card)
    newer = next_file(folder, arguments.card)
    assert card is not None and newer is not None, "the deck was read from them"
    for path in (card, newer):
        check_clean(path)
    verdict = _decision(settings, deck, arguments.card)
    code = _print_decision(verdict)
    if code == 0:
        card.write_bytes(newer.read_bytes())
        newer.unlink()
        print(
            f"{card.name} holds version {verdict.card.version} now, and {newer.name} is gone: commit both"
        )
        for tool in gained_tools(deck.cards[arguments.card], verdict.card):
            print(f"turn on the flag {verdict.card.tool_grants[tool].flag!r} of the tool {tool!r}")
    return code


def _rollback(arguments: Namespace) -> int:
    import difflib

    from kit.compose.read import next_file
    from kit.compose.revision import RevisionError, check_clean, part_at
    from kit.settings import Settings

    folder = Path(arguments.deck or Settings.read().deck)
    if arguments.to is None:
        newer = next_file(folder, arguments.part)
        if newer is None:
            raise RevisionError(
                f"{arguments.part!r} has no new version here; say by --to which revision to go back to"
            )
        check_clean(newer)
        newer.unlink()
        print(f"{newer.name} is gone: every session has the version in place")
        return 0
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
    try:
        _read(Namespace(deck=folder))
    except DeckError as error:
        print(f"{path} is written, and the deck cannot be used with it:", *error.faults, sep="\n")
        return 1
    print(f"{path} is written: commit it")
    return 0
