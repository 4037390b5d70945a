"""Forks a turn at the span that is open: another model, pattern or prompt answers from there on."""

import streamlit as st

from kit.core.record import TurnRecord
from kit.core.trace import Span
from kit.patterns import patterns_of
from kit.stores.model_request import ModelRequest
from kit.ui.shared.frame import open_page, report_errors
from kit.ui.shared.host import Host
from kit.ui.shared.model_choice import usable_models
from kit.ui.shared.wording import label, model_words

UNCHANGED = "The same"


def draw_fork(host: Host, turn: TurnRecord, span: Span, request: ModelRequest | None) -> None:
    """Draws what may be other from a span on; the fork then stands beside its turn on the page Compare."""
    if span.kind not in ("model", "agent") or turn.status == "running":
        return
    with (
        st.expander("Fork here", icon=":material/fork_right:"),
        st.form(f"fork-{turn.id}-{span.id}", border=False),
    ):
        st.caption(
            "What came before is played from the trace: nothing is called for it. This, and what came after, is called."
        )
        model = st.selectbox(
            "Model", [UNCHANGED, *usable_models(host.kit)], format_func=model_words
        )
        pattern = st.selectbox(
            "Pattern", [UNCHANGED, *patterns_of(host.kit.deck)], format_func=label
        )
        stored_prompt = ""
        if request is not None:
            stored_prompt = request.prompt
        prompt = stored_prompt
        if stored_prompt:
            prompt = st.text_area("Stable prompt", stored_prompt, height=160)
        if not st.form_submit_button("Fork", icon=":material/fork_right:", type="primary"):
            return
    changes: dict[str, str] = {}
    if model != UNCHANGED:
        changes["model"] = model
    if pattern != UNCHANGED:
        changes["pattern"] = pattern
    if prompt != stored_prompt:
        changes["prompt"] = prompt
    notice = st.empty()
    with report_errors(notice):
        fork = host.fork(turn, span.id, **changes)
        notice.success(
            "It runs, and stands beside this turn on the page Compare.",
            icon=":material/fork_right:",
        )
        open_page("compare", turns=f"{turn.id},{fork}")
