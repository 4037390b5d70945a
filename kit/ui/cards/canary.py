"""Which cards share their sessions with a new version, who is on which, what the judges say, and the decision."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from kit.compose.canary import canary_of, newest_of, versions_of
from kit.compose.deck import Deck
from kit.core.display.command import command
from kit.metrics.judgement import judgements
from kit.settings import Settings
from kit.ui.shared.frame import report_errors
from kit.ui.shared.host import Host
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.template import table_html
from kit.ui.shared.visitor import identify, is_demo, is_operator, visitor
from kit.ui.shared.wording import literal

if TYPE_CHECKING:
    from kit.bench.canary import Gate
    from kit.bench.promotion import CardChange

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
    from kit.bench.promotion import obstacles

    deck = host.kit.deck
    for card_id in deck.next_cards:
        versions = str(versions_of(deck, [card_id]))
        gates = _gates(host, str(host.kit.settings.store), card_id, versions)
        st.markdown(f"#### Two versions of {deck.cards[card_id].label} share the sessions")
        st.markdown(f"{_WORDS[decide(gates)]} {_shares(deck, card_id)}")
        for obstacle in obstacles(deck, newest_of(deck, card_id)):
            st.markdown(f":orange-badge[:material/block: not yet] {literal(obstacle)}")
        st.html(
            table_html("Evaluations of both versions", map(_row, gates), HEAD, kind="metrics rows")
        )
        _draw_decision(host, card_id)


def _draw_decision(host: Host, card_id: str) -> None:
    """Draws who decided, else the two buttons for an operator who is signed in, else the commands."""
    version = host.kit.deck.next_cards[card_id].version
    change = _change_of(host, card_id, version)
    if change is not None:
        moment = time.strftime("%Y-%m-%d %H:%M", time.gmtime(change.at))
        st.success(
            f"Version {literal(version)} was {change.change} by {literal(change.by)} on {moment} UTC. Both versions go "
            "on sharing the sessions until the processes of this deck are started again. Commit the files.",
            icon=":material/gavel:",
        )
        return
    # Whoever opens a demo is nobody, and must not change the files of the deck. Before a service the evidence is there.
    if is_demo() or host.is_remote or not is_operator():
        st.caption(
            f"`{command('evolve', 'decide', card_id)}` plays the cases for failing tools as well, "
            f"`{command('evolve', 'promote', card_id)}` puts the new version in place, and "
            f"`{command('evolve', 'rollback', card_id)}` takes it away."
        )
        return
    with st.container(horizontal=True, key=f"decision-{card_id}"):
        with st.popover("Promote", icon=":material/check:"):
            st.markdown(
                f"The cases for failing tools are played. If nothing speaks against version {literal(version)}, its "
                "file takes the place of the other. It is everybody's with the next start."
            )
            if st.button(f"Promote version {literal(version)}", key=f"promote-{card_id}"):
                _promote(host, card_id)
        with st.popover("Roll back", icon=":material/undo:"):
            st.markdown(
                f"The file of version {literal(version)} is removed. From the next start on all sessions have the "
                "version in place."
            )
            if st.button(f"Roll back version {literal(version)}", key=f"rollback-{card_id}"):
                _roll_back(host, card_id)


def _promote(host: Host, card_id: str) -> None:
    from kit.bench.promotion import put_in_place

    by = identify(Settings.read()).name
    folder = Path(host.kit.settings.deck)
    work = put_in_place(host.kit, folder, card_id, visitor(host), by)
    with report_errors(st.empty()):
        try:
            with st.spinner("The cases for failing tools are played"):
                verdict = host.wait(work, timeout=600)
        except TimeoutError:
            st.warning("It takes longer than ten minutes and goes on. Look here again later.")
            return
        if verdict.promoted:
            st.rerun()
        reasons = "\n".join(f"- {literal(fault)}" for fault in verdict.faults)
        st.warning(
            f"It stays as it is, for this speaks against it:\n{reasons}", icon=":material/block:"
        )


def _roll_back(host: Host, card_id: str) -> None:
    from kit.bench.promotion import take_away

    by = identify(Settings.read()).name
    folder = Path(host.kit.settings.deck)
    version = host.kit.deck.next_cards[card_id].version
    who = visitor(host)
    with report_errors(st.empty()):
        host.documents(lambda stores: take_away(stores.events, folder, card_id, version, who, by))
        st.rerun()


def _change_of(host: Host, card_id: str, version: str) -> "CardChange | None":
    """Returns what was decided of a card's new version since this process began to run it."""
    from kit.bench.promotion import card_changes
    from kit.compose.read import next_file

    # The file is there until somebody has decided.
    if next_file(Path(host.kit.settings.deck), card_id) is not None:
        return None
    for change in host.documents(lambda stores: card_changes(stores.events)):
        if change.card == card_id and change.version == version:
            return change
    return None


@st.cache_resource(show_spinner=False, ttl=20)
def _gates(_host: Host, store: str, card_id: str, versions: str) -> "tuple[Gate, ...]":
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
