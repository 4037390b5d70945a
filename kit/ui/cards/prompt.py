"""A card's prompt as it would be sent: its blocks, where its personal part begins, and the share of
it that a cohort shares."""

from html import escape

from kit.compose.deck import Deck
from kit.compose.prompts import Prompt, PromptPlan, plan_prompt, tokens
from kit.core.card import AgentCard
from kit.core.context import DynamicContext
from kit.core.value import Value


class Piece(Value):
    """A stretch of the prompt, in the order in which the model reads it."""

    name: str
    note: str
    text: str
    personal: bool = False

    @property
    def tokens(self) -> int:
        return tokens(self.text)


def assembled(
    card: AgentCard, deck: Deck, dynamic: DynamicContext
) -> tuple[Prompt, tuple[Piece, ...]]:
    """Returns the prompt of one request, and its pieces: joined by empty lines they are its text."""
    plan = plan_prompt(card, deck)
    prompt = plan.assemble(dynamic)
    return prompt, (
        *_pieces(plan, card),
        Piece(name="request", note="new for every request", text=prompt.suffix, personal=True),
    )


def _pieces(plan: PromptPlan, card: AgentCard) -> list[Piece]:
    pieces: list[Piece] = []
    for b in plan.blocks:
        pieces.append(Piece(name=b.id, note=f"{b.owner}, version {b.version}", text=b.text.strip()))
    remainder = plan.prefix[sum(len(piece.text) + 2 for piece in pieces) :]
    name, source = (
        ("routing lines", "the deck's settings")
        if card.sub_agents
        else ("answer schema", "the card")
    )
    return pieces + (
        [Piece(name=name, note=f"made from {source}", text=remainder)] if remainder else []
    )


def prefix_share(prompt: Prompt) -> float:
    """Returns the share of the prompt that is the same for a cohort, 0 to 1, by characters."""
    return len(prompt.prefix) / max(len(prompt.text), 1)


def prompt_html(prompt: Prompt, pieces: tuple[Piece, ...]) -> str:
    """Returns the pieces as HTML, with a border between the shared and the personal ones."""
    whole = sum(piece.tokens for piece in pieces)
    bar = "".join(_slice(piece, whole) for piece in pieces)
    size = sum(piece.tokens for piece in pieces if not piece.personal)
    summary = (
        f"about {size:,} tokens, {prefix_share(prompt):.0%} of the prompt, cohort "
        f"<code>{escape(prompt.cohort)}</code>"
    )
    border = f'<p class="border"><b>Stable prefix ends here</b> <span>{summary}</span></p>'
    prefix = "".join(_text(piece) for piece in pieces if not piece.personal)
    personal = "".join(_text(piece) for piece in pieces if piece.personal)
    return (
        f'<section class="prompt" aria-label="The prompt"><div class="bar" aria-hidden="true">{bar}</div>'
        f'<div class="held" tabindex="0" role="group" aria-label="Stable prefix">{prefix}</div>'
        f"{border}{personal}</section>"
    )


def _slice(piece: Piece, whole: int) -> str:
    if piece.personal:
        kind = "own"
    else:
        kind = ""
    return f'<i class="{kind}" style="flex-grow:{max(piece.tokens, whole / 100):.1f}" title="{escape(piece.name)}"></i>'


def _text(piece: Piece) -> str:
    if piece.personal:
        kind = "piece own"
    else:
        kind = "piece"
    head = f"<h4>{escape(piece.name)} <span>{escape(piece.note)}, about {piece.tokens} tokens</span></h4>"
    return f'<div class="{kind}">{head}<pre>{escape(piece.text)}</pre></div>'
