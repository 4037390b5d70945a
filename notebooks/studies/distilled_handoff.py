"""What a sub-agent reads, and how much of it others read too: told the whole conversation, or what
is distilled of it."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kit.compose.deck import Deck, load_deck
from kit.compose.prompts import tokens
from kit.core.card import Handoff
from kit.core.record import Message
from kit.home import HOME
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.wire import open_kit

WORDS = (
    "calm",
    "grim",
    "funny",
    "short",
    "finished",
    "new",
    "old",
    "bright",
    "slow",
    "wolves",
    "robots",
    "schools",
    "ghosts",
    "saints",
)
ANSWER = json.dumps(
    {
        "ranked_explanations": [
            {"title_id": "mg-0001", "explanation": "Iron Wolf fits.", "confidence": 0.9}
        ]
    }
)
WAYS = ("whole conversation", "distilled")


@dataclass(frozen=True)
class Reading:
    """One request as the sub-agent's model got it."""

    way: str
    dialogue: int
    tokens: int
    """Estimated, of everything it read."""
    conversation: int
    """Estimated tokens of the conversation so far."""
    cached: float
    """Share of it, from the start, that the request before had in common with it, 0 to 1; 0 for the first."""


async def measure(dialogues: int = 20, size: int = 32_000, seed: int = 0) -> list[Reading]:
    """Plays one request in each of so many conversations of about `size` tokens, by each way; every
    one is another reader's.

    The deck is the manga deck, asked through its orchestrator; models are scripted, so that only
    what they read differs. The helper's summaries are of any length up to the limit that the card
    sets.
    """
    rng = random.Random(seed)
    talks = [_conversation(rng, size) for _ in range(dialogues)]
    return [reading for way in WAYS for reading in await _play(way, talks)]


async def _play(way: str, talks: Sequence[Sequence[Message]]) -> list[Reading]:
    explainer = ScriptedModel(lambda _: ANSWER)
    texts: list[str] = []
    for number, talk in enumerate(talks):
        taste = _words(random.Random(number), 10, 600)
        helper = ScriptedModel(
            Line(calls=[("submit_explainer_fields", {"user_prefs_summary": taste})])
        )
        ask = Line(
            "Let me look.",
            calls=[("ask_explainer", {"query": "what should I read next", "intent_count": 1})],
        )
        models = {
            "planner": ScriptedModel(ask, "Iron Wolf fits."),
            "explainer": explainer,
            "helper": helper,
            "*": "offline",
        }
        async with open_kit(
            Settings(store=":memory:", model="offline"), deck=_deck(way), models=models
        ) as kit:
            session = kit.session(f"{way}-{number}", user=f"reader-{number:03}")
            await run_turn("what should I read next", session, kit, history=talk, in_play=())
        texts.append("\n\n".join(str(message.content) for message in explainer.seen[-1]))
    shares = [0.0, *(_common(one, other) / len(other) for one, other in pairwise(texts))]
    sizes = [sum(tokens(line.text) for line in talk) for talk in talks]
    return [
        Reading(way, number, tokens(text), size, share)
        for number, (text, size, share) in enumerate(zip(texts, sizes, shares, strict=True))
    ]


def _deck(way: str) -> Deck:
    """Returns the manga deck; told everything, the explainer's hand-off is open and its budget wide enough for it."""
    deck = load_deck(HOME / "cards" / "manga")
    if way == "distilled":
        return deck
    card = deck.cards["explainer"]
    wide = card.policy.model_copy(update={"tokens_in": 64_000})
    card = card.model_copy(
        update={"handoff": Handoff(output_schema=card.handoff.output_schema), "policy": wide}
    )
    settings = deck.settings.model_copy(update={"history": "whole"})
    return replace(deck, cards={**deck.cards, "explainer": card}, settings=settings)


def _conversation(rng: random.Random, size: int) -> list[Message]:
    lines: list[Message] = []
    room = 4 * size * rng.uniform(0.8, 1.2)
    while room > 0:
        for role, words in (("user", (5, 25)), ("assistant", (60, 200))):
            text = _words(rng, *words)
            lines.append(
                Message.model_validate(
                    {"turn_id": f"t{len(lines) // 2}", "role": role, "text": text}
                )
            )
            room -= len(text)
    return lines


def _words(rng: random.Random, least: int, most: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(least, most)))


def _common(one: str, other: str) -> int:
    return next(
        (at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x != y),
        min(len(one), len(other)),
    )
