"""The page Cards: the deck as a table, one card in full, who is on which version, and its prompt."""

from collections.abc import Iterable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.deck import Deck
from kit.core.context import DynamicContext, Principal
from kit.core.display.command import command
from kit.core.display.count import many
from kit.settings import HOME
from kit.ui.cards.canary import draw_canaries
from kit.ui.cards.card import card_html
from kit.ui.cards.prompt import assembled, prompt_html
from kit.ui.shared import address
from kit.ui.shared.frame import with_host
from kit.ui.shared.host import Host
from kit.ui.shared.selection import draw_list
from kit.ui.shared.template import table_html
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import label

_MARKS = str.maketrans({"$": r"\$", "_": r"\_", "<": r"\<"})


@with_host
def page(host: Host, top: DeltaGenerator) -> None:
    """Draws the page; the address names the card."""
    deck = host.kit.deck
    card_id = address.read("card")
    if card_id not in deck.cards:
        if card_id:
            top.warning(
                "There is no such card in this deck. Choose one below.",
                icon=":material/search_off:",
            )
        card_id = deck.settings.orchestrator
    _heading(deck)
    _draw_card(host, deck, card_id)
    draw_canaries(host)
    st.markdown("#### What it is told")
    _prompt(host, visitor(host), card_id)
    st.caption(
        f"`{command('cards', 'routing')}` says which description loses which questions to which card."
    )


def _heading(deck: Deck) -> None:
    st.markdown("## Cards")
    unbound = ""
    active = len(deck.active())
    if active < len(deck.cards):
        unbound = f", {len(deck.cards) - active} not bound here"
    st.markdown(
        f"The deck **{deck.name}**: {many(len(deck.cards), 'card')}{unbound}, "
        f"{many(len(deck.blocks), 'prompt block')}, at most "
        f"{many(deck.settings.cap, 'sub-agent')} asked in one turn."
    )
    if deck.warnings:
        advised = f"The deck check advises {many(len(deck.warnings), 'thing')}"
        with st.expander(advised, icon=":material/lightbulb:", expanded=True):
            st.markdown("\n".join(map(_item, deck.warnings)))
    else:
        st.markdown(":green-badge[:material/check: Deck check] :gray[nothing to advise]")


def _item(warning: str) -> str:
    # Backticks in a warning are the deck check's own: they may act, other marks may not.
    return "- " + warning.replace(f"{HOME}/", "").translate(_MARKS)


def _draw_card(host: Host, deck: Deck, card_id: str) -> None:
    deck_column, card_column = st.columns([6, 5], gap="medium")
    ids = list(dict.fromkeys((deck.settings.orchestrator, *deck.cards)))
    with deck_column:
        draw_list("Card", "card", ids, card_id, label, width=260)
        st.html(deck_html(deck, ids))
    running = None
    if card_id in host.kit.team.agents:
        running = host.kit.model
    card_column.html(card_html(deck.cards[card_id], deck, running))


def deck_html(deck: Deck, ids: Iterable[str]) -> str:
    """Returns a table with a row for each card: what it may call, and whom it may ask."""
    active = {card.id for card in deck.active()}
    rows: list[tuple[str, ...]] = []
    for card_id in ids:
        card = deck.cards[card_id]
        name = label(card_id)
        if card_id not in active:
            name += " (not bound here)"
        rows.append((name, ", ".join(card.tools), ", ".join(map(label, card.sub_agents))))
    head = ("Card", "Tools", "May ask")
    return table_html("The cards of the deck", rows, head, kind="deck rows")


def _prompt(host: Host, principal: Principal, card_id: str) -> None:
    deck = host.kit.deck
    if run := deck.cards[card_id].run:
        st.caption(f"It runs `{run}`, which brings its own prompt.")
        return
    session = host.session("", principal)
    assert session is not None
    dynamic = DynamicContext(
        date=host.kit.today,
        user_id=principal.user_id,
        locale=session.locale,
        location=session.location,
    )
    prompt, pieces = assembled(deck.cards[card_id], deck, dynamic)
    st.caption(
        f"As it would go out for {principal} today, before a word of the conversation. Above the "
        f"border it is the same for everyone."
    )
    st.html(prompt_html(prompt, pieces))
