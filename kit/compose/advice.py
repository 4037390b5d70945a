"""Warnings about a deck that can be used as it is (decisions 23)."""

import re
from collections.abc import Iterator

from kit.compose.check import Where
from kit.compose.parts import Parts
from kit.compose.prompts import PROMPT_MOST, prompt_size, tokens
from kit.compose.yaml_source import Faults
from kit.core.errors import nearest

DESCRIPTION_TOKENS = (200, 400)
"""What a routing description should take."""
PROMPT_WARNING = 0.25
"""Share of a model's context window from which a prompt is worth a look."""
_CAN_DO = re.compile(r"<can_do>(.*?)</can_do>", re.DOTALL)


Warnings = Iterator[tuple[str, str, tuple[str | int, ...], str]]
"""What a warning is about (a card, a block, the settings ...), its id, the path inside it, and the sentence."""


def advise(parts: Parts, where: Where) -> Faults:
    """Every warning about parts that fit together, each `place: sentence`."""
    warnings = Faults()
    for check in (_cards, _claims, _flags, _settings, _prices):
        for noun, name, path, sentence in check(parts):
            warnings.add(where(noun, name, path), sentence)
    return warnings


def _cards(parts: Parts) -> Warnings:
    low, high = DESCRIPTION_TOKENS
    sub_agents = {name for card in parts.cards.values() for name in card.sub_agents}
    for card in parts.cards.values():
        length = tokens(card.description)
        # Nobody routes to the others, so theirs may be as short as they like.
        if card.id in sub_agents and not low <= length <= high:
            sentence = f"description of about {length} tokens; {low} to {high} are the target"
            yield "card", card.id, ("description",), sentence
        if card.run is not None:
            # It brings its own prompt.
            continue
        window = parts.models[card.model].context_window
        size = prompt_size(card, parts) or 0
        if PROMPT_WARNING < size / window <= PROMPT_MOST:
            sentence = f"prompt of about {size} tokens takes {size / window:.0%} of the window of {card.model!r}"
            yield "card", card.id, ("prompt_blocks",), sentence


def _claims(parts: Parts) -> Warnings:
    """Warns of two blocks that claim the same capability."""
    owners: dict[str, str] = {}
    block_names = _block_names(parts)
    for block in parts.blocks.values():
        if block.category != "capabilities" or block.id not in block_names:
            continue
        for claim in _claims_in(block.text):
            owner = owners.setdefault(claim, block.id)
            if owner != block.id:
                sentence = f"claims {claim!r}, as block {owner!r} does; let one agent own it"
                yield "block", block.id, (), sentence


def _claims_in(text: str) -> Iterator[str]:
    for section in _CAN_DO.findall(text):
        for line in section.splitlines():
            # Without its signs, so that a list with other bullets says the same.
            claim = " ".join(re.sub(r"[^\w\s]", " ", line.casefold()).split())
            if claim:
                yield claim


def _flags(parts: Parts) -> Warnings:
    """Warns of flags declared nowhere: what hangs on one stays off."""
    uses: list[tuple[str, str, str | None]] = []
    for noun, cards in (("card", parts.cards), ("next card", parts.next_cards)):
        for card in cards.values():
            uses.append((noun, card.id, card.flag))
            for grant in card.tool_grants.values():
                uses.append((noun, card.id, grant.flag))
    for block in parts.blocks.values():
        uses.append(("block", block.id, block.flag))
    for noun, name, flag in uses:
        if flag and flag not in parts.flags:
            hint = nearest(flag, parts.flags)
            yield noun, name, ("flag",), f"flag {flag!r} is declared nowhere and stays off: {hint}"


def _settings(parts: Parts) -> Warnings:
    settings = parts.settings
    if not settings.required_blocks:
        sentence = "no block is required: no prompt begins with the platform's own rules"
        yield "settings", "deck", ("required_blocks",), sentence
    call = settings.model_call_budget_ms
    turn = settings.turn_budget_ms
    if call >= turn:
        sentence = (
            f"one model call of the orchestrator may take {call} ms, a whole turn {turn}: "
            f"one that hangs leaves no answer; set model_call_budget_ms lower"
        )
        yield "settings", "deck", ("model_call_budget_ms",), sentence
    for card_id in settings.canary:
        if card_id not in parts.next_cards:
            sentence = f"no file holds a new version of {card_id!r}, so it shares nothing"
            yield "settings", "deck", ("canary", card_id), sentence
    if settings.history == "whole":
        sentence = (
            "every sub-agent reads what was said to the others; it is there to be compared with"
        )
        yield "settings", "deck", ("history",), sentence


def _prices(parts: Parts) -> Warnings:
    """Warns of a helper or composing model that costs more than the orchestrator's; unknown prices are passed over."""
    settings = parts.settings
    models = parts.models
    lead = models[parts.cards[settings.orchestrator].model]
    limit = lead.price(1, 1)
    for setting in ("helper_model", "compose_model"):
        key = getattr(settings, setting)
        price = models[key].price(1, 1) if key else None
        if price is not None and limit is not None and price > limit:
            sentence = f"{key!r} costs more than the orchestrator's {lead.key!r}; extra calls are for a cheaper model"
            yield "settings", "deck", (setting,), sentence


def _block_names(parts: Parts) -> set[str]:
    names = {*parts.settings.required_blocks}
    for card in (*parts.cards.values(), *parts.next_cards.values()):
        names.update(card.prompt_blocks)
    return names
