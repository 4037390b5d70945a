"""`kit check`, `gained`, `schema`: what a deck says, and what keeps it from being bound."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Adds the commands to a parser's."""
    check = commands.add_parser("check", help="load and bind a deck; every fault in one report")
    check.add_argument("deck", type=Path, nargs="?", help="folder of the deck (default: the settings')")
    check.set_defaults(run=_check)

    gained = commands.add_parser("gained", help="which agent gained which tool between two git revisions of the cards")
    gained.add_argument("old", metavar="REV1")
    gained.add_argument("new", metavar="REV2")
    gained.add_argument("--deck", type=Path, help="folder of the deck (default: the settings')")
    gained.set_defaults(run=_gained)

    commands.add_parser("schema", help="the JSON Schema of an agent card, for editors").set_defaults(run=_schema)


def _check(arguments: Namespace) -> int:
    from kit.compose.deck import load_deck
    from kit.compose.read import code_references
    from kit.settings import Settings
    from kit.tools.loading import Reference

    settings = Settings.read()
    folder = Path(arguments.deck or settings.deck)
    for reference in code_references(folder):
        print(f"imports {reference} ({Reference.parse(reference).place(folder)})", flush=True)
    deck = load_deck(folder, (), environment=settings.environment)
    for warning in deck.warnings:
        print(f"warning: {warning}")
    for card in deck.active():
        limit, parts = deck.policy(card).time_budget_ms, f"{len(card.tools)} tools, {len(card.sub_agents)} sub-agents"
        print(f"{card.id:18} {card.model:20} {parts}, {limit} ms")
    has = deck.settings
    print(
        f"time: {has.turn_budget_ms} ms a turn, {has.model_call_budget_ms} ms a model call of the orchestrator, "
        f"{has.helper_ms} ms a job of the helper model"
    )
    print(f"{deck.name}: {len(deck.cards)} cards, {len(deck.blocks)} blocks, cap {has.cap}, {len(deck.warnings)} warnings")
    return 0


def _gained(arguments: Namespace) -> int:
    from kit.compose.gained import print_gained
    from kit.settings import Settings

    return print_gained(Path(arguments.deck or Settings.read().deck), arguments.old, arguments.new)


def _schema(_: Namespace) -> int:
    from kit.core.card import AgentCard

    print(json.dumps(AgentCard.model_json_schema(), indent=2))
    return 0
