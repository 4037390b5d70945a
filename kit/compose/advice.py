"""Warnings about a deck that can be used as it is (decisions 23)."""

import re
from collections.abc import Iterator

from kit.compose.check import Where
from kit.compose.parts import Parts
from kit.compose.prompts import PROMPT_MOST, prompt_size, tokens
from kit.compose.status import SEEN_WITHIN
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
    for check in (
        _cards,
        _claims,
        _flags,
        _no_required_blocks,
        _unused,
        _statuses,
        _budgets,
        _prices,
        _history,
    ):
        for noun, name, path, sentence in check(parts):
            warnings.add(where(noun, name, path), sentence)
    return warnings


def _cards(parts: Parts) -> Warnings:
    low, high = DESCRIPTION_TOKENS
    sub_agents = {name for card in parts.cards.values() for name in card.sub_agents}
    for card in parts.cards.values():
        length = tokens(card.description)
        if card.id in sub_agents and not low <= length <= high:
            yield (
                "card",
                card.id,
                ("description",),
                f"description of about {length} tokens; {low} to {high} are the target",
            )
        window = parts.models[card.model].context_window
        size = prompt_size(card, parts) or 0
        if PROMPT_WARNING < size / window <= PROMPT_MOST:
            sentence = f"prompt of about {size} tokens takes {size / window:.0%} of the window of {card.model!r}"
            yield "card", card.id, ("prompt_blocks",), sentence


def _claims(parts: Parts) -> Warnings:
    """Warns of two blocks that claim the same capability."""
    owners: dict[str, str] = {}
    block_names: set[str] = set()
    for card in parts.cards.values():
        for name in card.prompt_blocks:
            block_names.add(name)
    for block in parts.blocks.values():
        if block.category != "capabilities" or block.id not in block_names:
            continue
        for claim in _claims_in(block.text):
            first = owners.setdefault(claim, block.id)
            if first != block.id:
                yield (
                    "block",
                    block.id,
                    (),
                    f"claims {claim!r}, as block {first!r} does; let one agent own it",
                )


def _claims_in(text: str) -> Iterator[str]:
    for section in _CAN_DO.findall(text):
        for line in section.splitlines():
            claim = " ".join(re.sub(r"[^\w\s]", " ", line.casefold()).split())
            if claim:
                yield claim


def _flags(parts: Parts) -> Warnings:
    block_names = _block_names(parts)
    uses: list[tuple[str, str, str]] = []
    for card in parts.cards.values():
        if card.flag:
            uses.append(("card", card.id, card.flag))
    uses += [
        ("card", card.id, grant.flag)
        for card in parts.cards.values()
        for grant in card.tool_grants.values()
        if grant.flag
    ]
    uses += [
        ("block", block.id, block.flag)
        for block in parts.blocks.values()
        if block.flag and block.id in block_names
    ]
    for noun, name, flag in uses:
        if flag not in parts.flags:
            yield (
                noun,
                name,
                ("flag",),
                f"flag {flag!r} is declared nowhere and stays off: {nearest(flag, parts.flags)}",
            )
    flags = (
        {flag for _, _, flag in uses} | set(parts.flag_settings) | set(parts.tool_flags.values())
    )
    for flag in sorted(parts.flags.keys() - flags):
        yield "environment", "", ("flags", flag), f"flag {flag!r} is used by no card, block or tool"


def _no_required_blocks(parts: Parts) -> Warnings:
    if not parts.settings.required_blocks:
        yield (
            "settings",
            "deck",
            ("required_blocks",),
            "no block is required: no prompt begins with the platform's own rules",
        )


def _unused(parts: Parts) -> Warnings:
    """Blocks of this deck's own agents; those of others may serve another deck."""
    block_names = _block_names(parts)
    for block in parts.blocks.values():
        if block.owner in parts.cards and block.id not in block_names:
            yield "block", block.id, (), f"block {block.id!r} is used by no card"


def _statuses(parts: Parts) -> Warnings:
    settings = parts.settings
    slowest = settings.status_policy.slowest_ms
    if slowest is None or slowest > SEEN_WITHIN:
        if slowest is None:
            took = "never"
        else:
            took = f"after {slowest} ms"
        sentence = (
            f"of a silent agent the first line is read {took}; {SEEN_WITHIN} ms are the target"
        )
        yield "settings", "deck", ("status_policy",), sentence
    for status in (*settings.status_phrases, *settings.status_policy.rules):
        term = settings.vocabulary.get(status)
        if term and term.deprecated:
            if term.instead:
                use = f"; use {term.instead!r}"
            else:
                use = ""
            yield (
                "settings",
                "deck",
                (),
                f"status {status!r} is deprecated since {term.deprecated}{use}",
            )


def _budgets(parts: Parts) -> Warnings:
    call = parts.settings.model_call_budget_ms
    turn = parts.settings.turn_budget_ms
    if call >= turn:
        sentence = (
            f"one model call of the orchestrator may take {call} ms, a whole turn {turn}: "
            f"one that hangs leaves no answer"
        )
        yield (
            "settings",
            "deck",
            ("model_call_budget_ms",),
            f"{sentence}; set model_call_budget_ms lower",
        )


def _prices(parts: Parts) -> Warnings:
    """Warns of a helper or composing model that costs more than the orchestrator's; unknown prices are passed over."""
    settings = parts.settings
    models = parts.models
    lead = models[parts.cards[settings.orchestrator].model]
    for setting, key in (
        ("helper_model", settings.helper_model),
        ("compose_model", settings.compose_model),
    ):
        if key:
            theirs = models[key].price(1, 1)
        else:
            theirs = None
        ours = lead.price(1, 1)
        if theirs is not None and ours is not None and theirs > ours:
            sentence = f"{key!r} costs more than the orchestrator's {lead.key!r}; extra calls are for a cheaper model"
            yield "settings", "deck", (setting,), sentence


def _history(parts: Parts) -> Warnings:
    if parts.settings.history == "whole":
        yield (
            "settings",
            "deck",
            ("history",),
            "every sub-agent reads what was said to the others; it is there to be compared with",
        )


def _block_names(parts: Parts) -> set[str]:
    return {name for card in parts.cards.values() for name in card.prompt_blocks} | set(
        parts.settings.required_blocks
    )
