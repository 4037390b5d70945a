"""Forks a turn at the span that is open: with another model, pattern, prompt, or other failures from there on."""

from collections.abc import Sequence

import streamlit as st

from kit.core.record import TurnRecord
from kit.core.trace import Span
from kit.stores.model_request import ModelRequest
from kit.ui.shared.frame import open_page, report_errors
from kit.ui.shared.host import Host
from kit.ui.shared.model_choice import draw_choice


def draw_fork(
    host: Host, turn: TurnRecord, span: Span, request: ModelRequest | None, faults: Sequence[str]
) -> None:
    """Draws what may be other from a span on, of a turn that was made to fail by `faults`; the fork
    then stands beside its turn on the page Compare."""
    if span.kind not in ("model", "agent") or turn.status == "running":
        return
    with (
        st.expander("Fork here", icon=":material/fork_right:"),
        st.form(f"fork-{turn.id}-{span.id}", border=False),
    ):
        st.caption(
            "What came before is played from the trace: nothing is called for it. This, and what came after, is called."
        )
        choice = draw_choice(host.kit, turn, faults)
        stored_prompt = request.prompt if request else ""
        prompt = stored_prompt
        if stored_prompt:
            prompt = st.text_area("Stable prompt", stored_prompt, height=160)
        if not st.form_submit_button("Fork", icon=":material/fork_right:", type="primary"):
            return
    changes: dict[str, str] = {}
    if choice.model != turn.model:
        changes["model"] = choice.model
    if choice.pattern != turn.pattern:
        changes["pattern"] = choice.pattern
    if prompt != stored_prompt:
        changes["prompt"] = prompt
    notice = st.empty()
    with report_errors(notice):
        other_faults = choice.faults if choice.faults != tuple(faults) else None
        fork = host.fork(turn, span.id, other_faults, **changes)
        notice.success(
            "It runs, and stands beside this turn on the page Compare.",
            icon=":material/fork_right:",
        )
        open_page("compare", turns=f"{turn.id},{fork}")
