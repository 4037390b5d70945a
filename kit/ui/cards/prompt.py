"""A card's prompt as it would be sent: its blocks, where its personal part begins, and the share of
it that a cohort shares."""

from kit.compose.deck import Deck
from kit.compose.prompts import Prompt, PromptPlan, plan_prompt, tokens
from kit.core.card import AgentCard
from kit.core.context import DynamicContext
from kit.core.value import Value
from kit.ui.shared.template import render


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
    length = 0
    for block in plan.blocks:
        text = block.text.strip()
        pieces.append(
            Piece(name=block.id, note=f"{block.owner}, version {block.version}", text=text)
        )
        # An empty line joins it to the next one.
        length += len(text) + 2
    # What follows the blocks is made and not written: routing lines of a card that asks others, else its schema.
    remainder = plan.prefix[length:]
    if remainder and card.sub_agents:
        pieces.append(
            Piece(name="routing lines", note="made from the deck's settings", text=remainder)
        )
    elif remainder:
        pieces.append(Piece(name="answer schema", note="made from the card", text=remainder))
    return pieces


def prefix_share(prompt: Prompt) -> float:
    """Returns the share of the prompt that is the same for a cohort, 0 to 1, by characters."""
    return len(prompt.prefix) / max(len(prompt.text), 1)


def prompt_html(prompt: Prompt, pieces: tuple[Piece, ...]) -> str:
    """Returns the pieces as HTML, with a border between the shared and the personal ones."""
    return render("prompt", prompt=prompt, pieces=pieces, share=prefix_share(prompt))
