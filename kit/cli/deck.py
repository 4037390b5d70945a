"""`kit check` and, of `kit cards`, `gained`, `promote` and `schema`: what a deck says, and what keeps it or a card of
it from going live."""

import asyncio
import io
import json
from argparse import Namespace
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.cli.options import cases_argument, deck_option, read_deck
from kit.core.display.count import many

if TYPE_CHECKING:
    from kit.bench.promotion import Promotion
    from kit.compose.deck import Deck
    from kit.compose.read import Outline
    from kit.settings import Settings


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    check = commands.add_parser("check", help="load and bind a deck; every fault in one report")
    deck_option(check, "deck")
    check.add_argument(
        "--trust",
        action="store_true",
        help="start the deck's MCP servers and accept the tools they offer (mcp.lock)",
    )
    check.add_argument(
        "--json",
        action="store_true",
        help="one fault or warning a line: kind, where, words with the fix; nothing else",
    )
    check.set_defaults(run=_check)


def add_to_cards(commands: Any) -> None:
    """Adds the commands of the group `cards`."""
    gained = commands.add_parser(
        "gained", help="which agent gained which tool between two git revisions of the cards"
    )
    gained.add_argument("old", metavar="REV1")
    gained.add_argument("new", metavar="REV2")
    deck_option(gained)
    gained.set_defaults(run=_gained)

    promotion = commands.add_parser(
        "promote", help="may a draft card go live? Plays labelled dialogues with the card active"
    )
    promotion.add_argument("card")
    cases_argument(promotion)
    deck_option(promotion)
    promotion.add_argument(
        "--write",
        action="store_true",
        help="set the card's file to active when nothing speaks against it",
    )
    promotion.set_defaults(run=_promote)

    commands.add_parser(
        "schema", help="the JSON Schema of an agent card, for editors"
    ).set_defaults(run=_schema)


def _print_code(folder: Path, outline: "Outline", skill_service_url: str | None) -> None:
    """Says whose code a deck imports, runs and calls, before any of that is done."""
    from kit.tools.loading import Reference
    from kit.tools.skills import chosen_service

    for reference in outline.references:
        print(f"imports {reference} ({Reference.parse(reference).location(folder)})", flush=True)
    for address in outline.addresses:
        print(f"asks {address}", flush=True)
    for name, server in outline.settings.mcp.items():
        print(f"MCP server {name} {server.describe(folder)}", flush=True)
    if service := chosen_service(outline.settings.skill_service, skill_service_url):
        print(f"skill service {service.describe(folder)}", flush=True)


def _check(arguments: Namespace) -> int:
    from kit.core.errors import DeckError
    from kit.settings import Settings

    settings = Settings.read()
    if not arguments.json:
        return _describe(_checked(arguments, settings), settings)
    try:
        # What is said on the way is for people.
        with redirect_stdout(io.StringIO()):
            deck = _checked(arguments, settings)
    except DeckError as error:
        _print_findings("fault", error.faults)
        return 2
    _print_findings("warning", deck.warnings)
    return 0


def _print_findings(kind: str, findings: Iterable[str]) -> None:
    from kit.compose.yaml_source import place_and_words

    for finding in findings:
        where, words = place_and_words(finding)
        print(json.dumps({"kind": kind, "where": where, "words": words}))


def _checked(arguments: Namespace, settings: "Settings") -> "Deck":
    """Says what a deck imports, runs and calls, and loads it. Raises what `load_deck` raises."""
    from kit.compose.deck import load_deck
    from kit.compose.read import read_outline
    from kit.tools.mcp.tools import accept, variables_of

    folder = Path(arguments.deck or settings.deck)
    outline = read_outline(folder)
    servers = outline.settings.mcp
    _print_code(folder, outline, settings.skill_service_url)
    if arguments.trust and servers:
        environment = settings.environment_of(variables_of(servers))
        for name, difference in asyncio.run(accept(servers, folder, environment)).items():
            print(f"MCP server {name}: {difference or 'offers what was accepted'}")
        print(f"accepted in {folder / 'mcp.lock'}")
    deck = load_deck(folder, (), environment=settings.environment)
    if deck.code.patterns:
        # The kit's patterns bring the whole runtime, which a deck without own ones need not load.
        from kit.patterns import modes_of

        # Raises where the name of an own pattern is given away.
        modes_of(deck)
    return deck


def _describe(deck: "Deck", settings: "Settings") -> int:
    from kit.compose.canary import canary_of

    for warning in deck.warnings:
        print(f"warning: {warning}")
    for spec in deck.models.values():
        if spec.factory:
            print(f"model {spec.key} calls {spec.factory}")
        if spec.api_key_env:
            print(f"model {spec.key} sends {spec.api_key_env} to {spec.base_url or 'its provider'}")
    for card in deck.active():
        parts = f"{many(len(card.tools), 'tool')}, {many(len(card.sub_agents), 'sub-agent')}"
        answers = card.model
        if card.run is not None:
            answers = card.run
            parts = "runs by itself"
        print(f"{card.id:18} {answers:20} {parts}, {deck.policy(card).time_budget_ms} ms")
    for card_id, newer in deck.next_cards.items():
        versions = f"version {newer.version}, the others {deck.cards[card_id].version}"
        print(f"{card_id:18} {canary_of(deck, card_id).share:.1%} of the sessions have {versions}")
    if settings.model:
        print(
            f"KIT_MODEL={settings.model} is not looked at: every card is checked with its own model"
        )
    has = deck.settings
    print(
        f"time: {has.turn_budget_ms} ms a turn, {has.model_call_budget_ms} ms a model call of the orchestrator, "
        f"{has.helper_ms} ms a job of the helper model"
    )
    parts = f"{many(len(deck.cards), 'card')}, {many(len(deck.blocks), 'block')}"
    print(f"{deck.name}: {parts}, cap {has.cap}, {many(len(deck.warnings), 'warning')}")
    return 0


def _gained(arguments: Namespace) -> int:
    from kit.compose.gained import print_gained
    from kit.settings import Settings

    return print_gained(Path(arguments.deck or Settings.read().deck), arguments.old, arguments.new)


def _promote(arguments: Namespace) -> int:
    from kit.bench.case import read_cases
    from kit.bench.promotion_trial import hold_trial, with_card_active, write_active
    from kit.settings import own_cases
    from kit.wire import open_kit

    settings, folder, deck = read_deck(arguments.deck)
    cases = arguments.cases or own_cases()
    deck = with_card_active(deck, arguments.card)

    async def trial() -> "Promotion":
        async with open_kit(settings.with_(store=":memory:", pace=0.0), deck=deck) as kit:
            print(f"{arguments.card} on {kit.model}, over {cases}")
            return await hold_trial(kit.deck, arguments.card, read_cases(cases), kit)

    verdict = asyncio.run(trial())
    if verdict.switches.n:
        print(f"switches: {verdict.switches}")
    else:
        print("switches: none among the cases")
    print(f"answers: {verdict.answers or 'judged by nobody'}")
    if not verdict.promoted:
        print(*verdict.faults, sep="\n")
        return 1
    print(f"{arguments.card} may go live at {verdict.threshold:.0%}")
    if arguments.write:
        print(f"status: active written to {write_active(folder, verdict.card)}")
    return 0


def _schema(_: Namespace) -> int:
    from kit.core.card import AgentCard

    print(json.dumps(AgentCard.model_json_schema(), indent=2))
    return 0
