"""The parts of a message, counted without the model: what the count must never do."""

import pytest

from kit.compose.deck import load_deck
from kit.runtime.answer.parts import Cards, parts_of
from kit.settings import HOME


@pytest.fixture(scope="module")
def cards() -> Cards:
    deck = load_deck(HOME / "cards" / "consumer")
    described = [(card.id, card.description) for card in deck.cards.values()]
    return tuple(card for card in described if card[0] != "orchestrator")


@pytest.mark.parametrize("number", [0, 2, 3, 17, 12345])
def test_a_number_alone_is_no_part(cards: Cards, number: int) -> None:
    assert parts_of(f"How many points do I have? ({number})", cards) == ()
