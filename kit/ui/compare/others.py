"""What other systems would have said: a stored turn beside a plain loop over its recording, and beside what the
systems of the stored table said in the scenario that comes nearest to it."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from kit.conformance.recorded_turn import (
    Fate,
    PlainPart,
    PlainTurn,
    parts_in,
    recording_of,
    scenario_of,
)
from kit.conformance.scenario import COMPOSERS, Scenario
from kit.conformance.table import Mark, Table
from kit.core.record import TurnRecord
from kit.settings import HOME
from kit.ui.shared.host import Host
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.template import render
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import label, prose

RESULT = HOME / "data" / "results" / "reference" / "conformance.json"
_OURS = "This turn"
_PLAIN = {False: "A plain loop, as first written", True: "A plain loop, at its best"}
_HOW = {
    False: "asyncio.gather over the same calls",
    True: "with return_exceptions=True and a time limit for each call",
}
_FATES: Mapping[Fate, tuple[str, Tone]] = {
    "answered": ("answered", "good"),
    "owned_up": ("failed, and the answer says so", "warn"),
    "lost": ("lost: it was answered, and nobody reads it", "bad"),
    "silent": ("lost: it failed, and nobody is told", "bad"),
    "made_up": ("made up: it failed, and something is claimed for it", "bad"),
    "raw": ("lost: the text of an exception in its place", "bad"),
}
_MARKS: Mapping[Mark, tuple[str, Tone]] = {
    "pass": ("passes", "good"),
    "fail": ("fails", "bad"),
    "not offered": ("not offered", "bad"),
    "void": ("void", ""),
}


def draw_others(host: Host, turn: TurnRecord, view: TurnView) -> None:
    """Draws a turn that has ended beside both plain loops, and under them the stored table."""
    draw_plain_loops(host, turn, view)
    if view.routing is not None:
        draw_table(scenario_of(view.routing))


def draw_plain_loops(host: Host, turn: TurnRecord, view: TurnView) -> None:
    """Draws the answer of a turn and of both plain loops beside each other; says so where its recording does not
    hold all that they would have read."""
    recording = recording_of(host.kit.store, turn, host.kit.team.root)
    if recording.gap:
        st.info(
            f"No plain loop can be played over this recording: {recording.gap}.",
            icon=":material/info:",
        )
        return
    # A model words the answers: they are asked for once, however often the page is drawn.
    key = f"plain-{turn.id}"
    if key not in st.session_state:
        with st.spinner("A plain loop over the same recording"):
            st.session_state[key] = host.plain_turns(recording, turn.model)
    turns: list[PlainTurn] = st.session_state[key]
    columns = st.columns(1 + len(turns), gap="medium")
    ours = view.answer or view.regret
    with columns[0]:
        _draw_column(
            _OURS,
            f"subagent-kit, {view.pattern.replace('_', ' ')}",
            parts_in(ours, recording),
            ours,
            "",
        )
    for column, plain in zip(columns[1:], turns, strict=True):
        with column:
            _draw_column(_PLAIN[plain.best], _HOW[plain.best], plain.parts, plain.text, plain.error)


def _draw_column(name: str, how: str, parts: Sequence[PlainPart], text: str, error: str) -> None:
    rows: list[tuple[str, bool, Tag]] = []
    for part in parts:
        words, tone = _FATES[part.fate]
        rows.append((label(part.agent), part.is_lost, Tag(text=words, tone=tone)))
    st.html(render("plain_loop", title=name, how=how, rows=rows, error=error))
    if text:
        st.markdown(prose(text))


def draw_table(scenario: Scenario) -> None:
    """Draws what each system of the stored table did in a scenario; nothing where no table is stored."""
    if not RESULT.exists():
        return
    table = Table.read(RESULT)
    systems = [_system(system, scenario, table) for system in table.systems]
    st.html(
        render(
            "stored_systems",
            date=table.content["date"],
            sentence=scenario.sentence,
            composers=COMPOSERS,
            systems=systems,
        )
    )


def _system(system: Mapping[str, Any], scenario: Scenario, table: Table) -> dict[str, object]:
    """Returns one system of the stored table in one scenario, in its best configuration, as its template takes it."""
    marks = table.marks(system)
    made_up = [child.lie for child in scenario.children]
    plays: list[dict[str, object]] = []
    for cell in system["cells"]:
        if cell["scenario"] != scenario.id or not cell["best"]:
            continue
        words, tone = _MARKS[marks[cell["scenario"], cell["composer"], True]]
        lines: list[tuple[str, bool]] = []
        for line in cell["text"].splitlines():
            lines.append((line, any(lie in line for lie in made_up)))
        plays.append({**cell, "verdict": Tag(text=words, tone=tone), "lines": lines})
    versions = ", ".join(f"{name} {number}" for name, number in system["packages"].items())
    return {"name": system["name"], "versions": versions, "plays": plays}
