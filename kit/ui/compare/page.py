"""The page Compare: turns beside each other on one axis, what differs between them, and which lost what."""

import string
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.bodies.turn import Fork
from kit.core.context import Principal
from kit.core.record import TurnRecord
from kit.stores.recall import repeated_turn
from kit.ui.canvas.drawing import axis_end
from kit.ui.canvas.lane import now_of
from kit.ui.compare.ask_again import draw_again, draw_question
from kit.ui.compare.difference import compare, differences_html, losses_html
from kit.ui.compare.others import draw_others
from kit.ui.compare.turn_column import TurnColumn
from kit.ui.shared import address
from kit.ui.shared.frame import with_store
from kit.ui.shared.host import Host
from kit.ui.shared.turn_facts import fork_words
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import label, literal

LOOK = Path(__file__).with_name("page.css")
LETTERS = string.ascii_uppercase
"""What turns are called on the page; it holds no more of them."""
NEWEST = 100
"""Turns that are offered; any other can be named in the address."""
TICK = 0.2
"""Seconds between two moves of the clocks of running turns."""

FIRST = 2.0
"""Seconds to wait for the first event of a turn that was just started."""


@with_store
def page(host: Host, top: DeltaGenerator) -> None:
    """Draws the turns that the address names; those of somebody else are not there."""
    st.html(LOOK)
    principal = visitor(host)
    ids = list(dict.fromkeys(filter(None, address.read("turns").split(","))))[: len(LETTERS)]
    views: list[TurnView] = []
    for turn_id in ids:
        view = host.view(turn_id, principal)
        if view is not None:
            views.append(_begun(host, view))
    if len(views) < len(ids):
        top.warning(
            "Some of these turns are not there, or not yours.", icon=":material/search_off:"
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("## Compare", width="stretch")
        stop = st.empty()
        if views:
            st.button(
                "Ask another question", icon=":material/add:", type="tertiary", on_click=_leave
            )
    # A form that was sent would stand greyed under the turns that it started until they have ended.
    start = st.empty()
    if views:
        _compare(host, principal, views, stop)
        return
    with start.container():
        st.markdown(
            "Ask one question in several ways, and see beside each other what each answered, what it lost "
            "and how long it took."
        )
        asked_ids = draw_question(host, principal)
        if asked_ids:
            _open(asked_ids)
        _choose(host, principal, {})


def _leave() -> None:
    for name in ("turns", "others"):
        st.query_params.pop(name, None)


def _open(turn_ids: Sequence[str]) -> None:
    st.query_params["turns"] = ",".join(turn_ids)
    st.rerun()


def _choose(host: Host, principal: Principal, labels: dict[str, str]) -> None:
    """Draws the list of turns to compare; a choice goes into the address. `labels`: ids of those on
    the page -> label."""
    newest = host.kit.store.turns(
        tenant_id=principal.tenant_id, user_id=principal.user_id, limit=NEWEST
    )
    words: dict[str, str] = {}
    for turn in newest:
        words[turn.id] = _choice(turn)
    words |= labels
    # A new key for each choice: the list always shows what the address says.
    key = f"compare-{','.join(labels)}"

    def choose() -> None:
        st.query_params["turns"] = ",".join(st.session_state[key])

    st.multiselect(
        "Turns to compare",
        list(words),
        list(labels),
        key=key,
        format_func=words.__getitem__,
        on_change=choose,
        max_selections=len(LETTERS),
        placeholder="Choose two or more of your turns",
    )


def _choice(turn: TurnRecord) -> str:
    """Returns a turn as one line of the list; the browser tells its lines apart by their text, so
    no two are the same."""
    when = datetime.fromtimestamp(turn.started_at).strftime("%d %b, %H:%M:%S")
    message = " ".join(turn.message.split())
    # Ids begin with the time: it is their end that tells turns of one second apart.
    return f"{message[:80]} · {label(turn.pattern)} · {when} · {turn.id[-6:]}"


def _compare(host: Host, principal: Principal, views: list[TurnView], stop: DeltaGenerator) -> None:
    same_question = len({view.question for view in views}) == 1
    if same_question:
        st.markdown(f"### {literal(views[0].question)}")
        if len(views) > 1:
            st.caption(
                f"One question, asked {len(views)} times: how each way of working with sub-agents answered it."
            )
    summary = st.empty()
    others = st.container()
    names: dict[str, str] = {}
    for letter, view in zip(LETTERS, views, strict=False):
        names[view.turn_id] = _name(letter, view, views[0])
    above = st.empty()
    columns = _columns(views, names, same_question=same_question)
    _draw(summary, columns, views)
    # Who opens a single turn is here to put another one beside it: the form stands above.
    with above.container() if len(views) == 1 else st.container():
        _change(host, principal, views[0], names)
    running = _running(views)
    if running:
        stop.button(
            "Stop",
            icon=":material/stop_circle:",
            on_click=_stop,
            args=(host, list(names)),
            shortcut="Esc",
        )
    while running:
        for number in running:
            views[number] = host.advance(views[number], TICK / len(running))
        _draw(summary, columns, views)
        running = _running(views)
    stop.empty()
    with others:
        _draw_others(host, principal, views)


def _name(letter: str, view: TurnView, first: TurnView) -> str:
    """Returns what a turn is called on the page; one that only repeats the first has other words than that."""
    name = f"Way {letter}: {label(view.pattern)}"
    if repeated_turn(view.session_id) == first.turn_id and view.pattern == first.pattern:
        return f"{name} again"
    return name


def _draw_others(host: Host, principal: Principal, views: Sequence[TurnView]) -> None:
    """Draws what others would have said in the turn that the address names in `others`; else offers it of the first
    turn that lost a part, or of the first."""
    subject = views[0]
    for view in reversed(views):
        if not view.parts.is_complete:
            subject = view
    for view in views:
        if view.turn_id == address.read("others"):
            subject = view
    turn = host.kit.store.turn(subject.turn_id, principal)
    if turn is None or subject.routing is None:
        return
    if address.read("others") == subject.turn_id:
        st.markdown("### What other systems would have said")
        draw_others(host, turn, subject)
        return
    st.button(
        "What other systems would have said",
        icon=":material/compare:",
        help="The same calls, answers and faults, gathered by a plain loop and worded by the same model",
        on_click=st.query_params.__setitem__,
        args=("others", subject.turn_id),
    )


def _running(views: Sequence[TurnView]) -> list[int]:
    return [number for number, view in enumerate(views) if view.running]


def _change(host: Host, principal: Principal, first: TurnView, names: dict[str, str]) -> None:
    """Draws how the first turn is asked again, and the list of turns; `names`: id of a turn on the
    page -> its label."""
    turn = host.kit.store.turn(first.turn_id, principal)
    if turn is not None:
        ids = draw_again(host, turn, names[turn.id], first.faults)
        if ids and len(names) + len(ids) <= len(LETTERS):
            _open([*names, *ids])
        elif ids:
            _open([turn.id, *ids])
    _choose(host, principal, names)


def _note(view: TurnView, names: Mapping[str, str], *, same_question: bool) -> str:
    """Returns where a turn comes from: the one that is asked again in it, and its question where these differ."""
    notes: list[str] = []
    first = repeated_turn(view.session_id)
    if first:
        verb = "asked again"
        for fork in view.bodies(Fork):
            verb = f"forked, {fork_words(fork)}"
        notes.append(f"{names.get(first, 'An earlier turn')} {verb}")
    if not same_question:
        notes.append(view.question)
    return " · ".join(notes)


def _stop(host: Host, turn_ids: Sequence[str]) -> None:
    for turn_id in turn_ids:
        host.cancel(turn_id)


def _columns(
    views: Sequence[TurnView], names: Mapping[str, str], *, same_question: bool
) -> list[TurnColumn]:
    """Makes a column for each turn; from three on a row of small multiples, their answers in tabs."""
    bodies: Sequence[DeltaGenerator | None] = [None] * len(views)
    if len(views) < 3:
        places = st.columns(len(views), gap="medium")
    else:
        places = [st.container(gap=None, key="compare-rows")] * len(views)
        bodies = st.tabs(list(names.values()))
    columns: list[TurnColumn] = []
    for slot, view, body in zip(places, views, bodies, strict=True):
        note = _note(view, names, same_question=same_question)
        # Rows below each other share the axis of the first.
        axis = body is None or not columns
        with slot:
            columns.append(TurnColumn(view, names[view.turn_id], note=note, body=body, axis=axis))
    return columns


def _begun(host: Host, view: TurnView) -> TurnView:
    """Returns a turn once it is known on which pattern it runs: that is its name on the page."""
    if view.pattern or not view.running:
        return view
    return host.advance(view, FIRST)


def _draw(
    summary: DeltaGenerator, columns: Sequence[TurnColumn], views: Sequence[TurnView]
) -> None:
    """Brings all columns up to date, on an axis as long as the longest turn; and above them what
    differs between those that have ended."""
    clocks = list(map(now_of, views))
    end = axis_end(max(clocks), fine=not _running(views))
    for column, view, now in zip(columns, views, clocks, strict=True):
        column.draw(view, end, now)
    turns = {column.label: view for column, view in zip(columns, views, strict=True)}
    losses = losses_html(compare(turns), turns, running=bool(_running(views)))
    summary.html(losses + differences_html(turns))
