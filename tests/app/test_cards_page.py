"""The cards page: the deck as a table, one card, and its prompt, run by
Streamlit's own test driver."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from kit.compose.deck import load_deck
from kit.core.card import AgentCard, Handoff, HandoffField
from kit.core.context import OPERATOR
from kit.settings import HOME
from kit.ui.cards import page as cards
from kit.ui.cards.card import card_html
from kit.ui.shared import frame
from kit.ui.shared.wording import label
from tests.app.rooms import app_over, room, shown
from tests.kits import small_deck

DECK = load_deck(HOME / "cards" / "consumer")
"""Dialogues; the whole file takes seconds."""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    with app_over(tmp_path / "kit.db", monkeypatch):
        yield room("cards")


def test_the_table_has_every_card_with_whom_it_may_ask_and_what_it_may_call(page: AppTest):
    said = shown(page.run())
    for card in DECK.cards.values():
        tools = ", ".join(card.tools)
        asks = ", ".join(map(label, card.sub_agents))
        row = f'<th scope="row">{label(card.id)}</th><td>{tools}</td><td>{asks}</td></tr>'
        assert row in said
    assert '<th scope="row">E-receipts</th>' in said, "as its card says"


def test_the_table_marks_a_draft():
    draft = AgentCard(id="play", description="Games.", model="offline", status="draft")
    deck = small_deck(("shop", "play"), [draft])
    html = cards.deck_html(deck, deck.cards)
    assert ">Play (not bound here)<" in html and ">Shop<" in html


def test_a_choice_changes_the_address_and_the_address_chooses(page: AppTest):
    assert 'data-card="orchestrator"' in shown(page.run())
    page.selectbox[0].set_value("rewards").run()
    assert page.query_params["card"] in ("rewards", ["rewards"])
    said = shown(page)
    assert (
        'data-card="rewards"' in said
        and "calculate_redemption" in said
        and "persona-rewards" in said
    )
    page.query_params["card"] = "nobody"
    assert "no such card" in shown(page.run()) and 'data-card="orchestrator"' in shown(page)


def test_a_card_says_what_its_file_says_and_apart_from_it_which_limits_are_the_deck_s():
    handoff = Handoff(fields={"reason": HandoffField(required=True)}, min_confidence=0.4)
    rewards = DECK.cards["rewards"].replace(handoff=handoff)
    said = card_html(rewards, DECK, "offline stand-in")
    assert "Here it runs on offline stand-in." in said and "min_confidence: 0.4" in said
    of_file, _, of_deck = said.partition("Limits that it takes from the deck")
    assert "max_tool_calls: 6" in of_file and "time_budget_ms: 8000" in of_file
    assert "tokens_in" not in of_file
    assert "tokens_in: 64000" in of_deck and "max_tool_calls" not in of_deck
    assert "requests" not in said
    assert "Not bound here" in card_html(rewards, DECK, None)


@pytest.mark.req("PC1-S5.5b")
def test_the_cohort_on_the_page_is_the_one_of_the_turns(page: AppTest):
    said = shown(page.run())
    host = frame.open_host(frame.Settings.read())
    turn = host.start("How many points do I have?", host.kit.session("s"))
    while not host.follow(turn, timeout=5).done:
        pass
    begun = [
        event.body
        for event in host.kit.store.events(turn, OPERATOR)
        if event.body.kind == "turn_started"
    ]
    assert len(begun) == 1 and f"<code>{begun[0].cohort}</code>" in said


def test_the_prompt_is_that_of_who_is_looking(page: AppTest):
    page.query_params["user"] = "u-002"
    said = shown(page.run())
    assert "User: u-002" in said and "Stonebridge" in said and "u-001" not in said
