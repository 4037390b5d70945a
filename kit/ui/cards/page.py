"""The page Cards: the deck as a graph, one card in full, who is on which version, its prompt, and how well the
descriptions route."""

from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.deck import Deck
from kit.core.context import DynamicContext, Principal
from kit.core.display.count import many
from kit.core.model import OFFLINE
from kit.settings import HOME
from kit.ui.cards.canary import draw_canaries
from kit.ui.cards.card import card_html
from kit.ui.cards.prompt import assembled, prompt_html
from kit.ui.cards.routing_heatmap import routes_html
from kit.ui.shared import address
from kit.ui.shared.frame import with_host
from kit.ui.shared.host import Host
from kit.ui.shared.selection import draw_list
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import label

if TYPE_CHECKING:
    from kit.bench.deck_routing import DeckRoutes
    from kit.bench.routing_report import RoutingReport

CASES = HOME / "data" / "cases" / "switches.jsonl"
_MARKS = str.maketrans({"$": r"\$", "_": r"\_", "<": r"\<"})
A_SECOND = 60
"""How many questions the stand-in routes in a second, on two slow cores."""


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
    st.markdown("#### Which description loses which questions")
    _routing(deck)


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
    from kit.ui.cards.graph import draw_graph, graph_of

    graph_column, card_column = st.columns([6, 5], gap="medium")
    with graph_column:
        ids = dict.fromkeys((deck.settings.orchestrator, *deck.cards))
        draw_list("Card", "card", list(ids), card_id, label, width=260)
        draw_graph(graph_of(deck), card_id)
    running = None
    if card_id in host.kit.team.agents:
        running = host.kit.model
    card_column.html(card_html(deck.cards[card_id], deck, running))


def _prompt(host: Host, principal: Principal, card_id: str) -> None:
    deck = host.kit.deck
    if run := deck.cards[card_id].run:
        st.caption(f"It runs `{run}`, which brings its own prompt.")
        return
    session = host.kit.session("", principal.tenant_id, principal.user_id)
    location = session.location
    if principal in host.people:
        location = host.people[principal].location
    dynamic = DynamicContext(
        date=host.kit.today, user_id=principal.user_id, locale=session.locale, location=location
    )
    prompt, pieces = assembled(deck.cards[card_id], deck, dynamic)
    st.caption(
        f"As it would go out for {principal} today, before a word of the conversation. Above the "
        f"border it is the same for everyone."
    )
    st.html(prompt_html(prompt, pieces))


@st.cache_resource(show_spinner=False, max_entries=8)
def _reports(key: str) -> "list[RoutingReport]":
    """Returns the list that keeps the report over these descriptions and dialogues, once there is one."""
    return []


def _routing(deck: Deck) -> None:
    # It brings the bench: the rest of the page does not wait for it.
    from kit.bench.deck_routing import DeckRoutes

    routes = DeckRoutes(deck, CASES)
    if not routes.questions:
        st.info(
            f"None of the dialogues in {CASES.name} is about cards of this deck.",
            icon=":material/info:",
        )
        return
    reports = _reports(routes.key)
    if not reports:
        _offer(routes, reports)
    if reports:
        right = 0
        total = 0
        for share in reports[0].accuracy.values():
            right += share.right or 0
            total += share.n
        st.markdown(
            f"**{right} of {total}** questions reached their card. Routed by the {OFFLINE.key} "
            f"stand-in, which is no language "
            "model: the figures are simulated. They compare descriptions and vouch for no model."
        )
        st.html(routes_html(reports[0]))


def _offer(routes: "DeckRoutes", reports: "list[RoutingReport]") -> None:
    seconds = max(1, round(routes.questions / A_SECOND))
    offer = st.empty()
    with offer.container():
        remainder = ""
        if routes.left_out:
            remainder = f" {routes.left_out} dialogues about other cards are left out."
        st.markdown(
            "Dialogues that switch from every card to every other are routed by the descriptions "
            "alone, with sub-agents that "
            f"only note that they were asked. Nothing is stored and no paid model is called.{remainder}"
        )
        clicked = st.button(
            f"Route {routes.questions} questions offline, about {seconds} s",
            icon=":material/play_arrow:",
        )
    if clicked:
        bar = offer.progress(0.0, "Routing")
        count = len(routes.cases)
        report = routes.run(lambda done: bar.progress(done / count, f"Dialogue {done} of {count}"))
        reports.append(report)
        offer.empty()
