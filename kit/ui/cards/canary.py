"""Which cards share their sessions with a new version, who is on which, and what the judges say so far."""

from typing import TYPE_CHECKING

import streamlit as st

from kit.compose.canary import canary_of, versions_of
from kit.compose.deck import Deck
from kit.core.display.command import command
from kit.metrics.judgement import judgements
from kit.ui.shared.host import Host
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.template import table_html

if TYPE_CHECKING:
    from kit.bench.canary import Gate

HEAD = ("Evaluation", "The new one is", "New version", "In place", "Difference, at any look")
_WORDS = {
    "promote": ":green-badge[:material/check: may go live]",
    "roll back": ":red-badge[:material/undo: to be taken back]",
    "go on": ":gray-badge[:material/hourglass_top: not decided yet]",
}


def draw_canaries(host: Host) -> None:
    """Draws a part for each card that has a new version; nothing where none has."""
    # It brings the statistics: a deck that shares nothing does not wait for them.
    from kit.bench.canary import decide

    deck = host.kit.deck
    for card_id in deck.next_cards:
        gates = _gates(host, card_id, str(versions_of(deck, [card_id])))
        st.markdown(f"#### Two versions of {deck.cards[card_id].label} share the sessions")
        st.markdown(f"{_WORDS[decide(gates)]} {_shares(deck, card_id)}")
        st.html(
            table_html("Evaluations of both versions", map(_row, gates), HEAD, kind="metrics rows")
        )
        st.caption(
            f"`{command('evolve', 'decide', card_id)}` plays the cases for failing tools as well, "
            f"`{command('evolve', 'promote', card_id)}` puts the new version in place, and "
            f"`{command('evolve', 'rollback', card_id)}` takes it away."
        )


@st.cache_resource(show_spinner=False, ttl=20)
def _gates(_host: Host, card_id: str, versions: str) -> "tuple[Gate, ...]":
    """Reads what was judged of a card's versions; a page that is drawn often reads it every twenty seconds."""
    from kit.bench.canary import gates_of

    verdicts = _host.documents(lambda stores: judgements(stores.events))
    return gates_of(_host.kit.deck, card_id, verdicts)


def _shares(deck: Deck, card_id: str) -> str:
    old = versions_of(deck, ())[card_id]
    new = versions_of(deck, [card_id])[card_id]
    share = canary_of(deck, card_id).share
    return f"**{share:.1%}** of the sessions have `{new}`, the others `{old}`."


def _row(gate: "Gate") -> tuple[str | Tag, ...]:
    tone: Tone = ""
    if gate.holds:
        tone = "good"
    elif gate.is_worse:
        tone = "bad"
    old, new = gate.sessions
    name = gate.name.capitalize()
    if gate.difference is None or gate.before is None or gate.after is None:
        return name, Tag(text="nothing to compare yet"), f"{new} sessions", f"{old} sessions", "–"
    difference = gate.difference
    return (
        name,
        Tag(text=gate.verdict, tone=tone),
        f"{gate.after.value:.1%} in {new:,} sessions",
        f"{gate.before.value:.1%} in {old:,} sessions",
        f"{100 * difference.value:+.1f} points, {100 * difference.low:+.1f} to {100 * difference.high:+.1f}",
    )
