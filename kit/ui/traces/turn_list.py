"""The list of the visitor's turns: its filters, over all of them, and its rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import streamlit as st

from kit.core.context import Principal
from kit.core.display.count import many
from kit.core.display.turn_parts import ENDING_WORDS, agents_asked, ending_words
from kit.core.record import TurnRecord
from kit.patterns.plan_execute import PLAN_EXECUTE
from kit.stores.recall import repeated_turn
from kit.stores.turn_filter import FailureAxis, TurnChoices, TurnFilter
from kit.ui.shared import address
from kit.ui.shared.frame import draw_link
from kit.ui.shared.selection import draw_rows
from kit.ui.shared.wording import agent_labels, label, model_words, simulated_words

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

PAGE = 15
FILTERS = ("f-states", "f-agents", "f-axes", "f-patterns", "f-models", "f-slow")
AXES: Mapping[FailureAxis, str] = {
    "invocation": "a sub-agent failed",
    "data": "data failed",
    "partial": "some of several failed",
    "cap": "over the limit",
}


def draw_turns(store: "TurnStore", principal: Principal, agents: Sequence[str]) -> None:
    """Draws the turns of a principal, those of the conversation that the address names; a click opens a trace.

    `agents` are those that the list can be filtered by.
    """
    choices = store.choices(principal)
    by = _read_filter(choices, agents)
    page_index = int(st.session_state.get("traces-page", 1)) - 1
    page = store.search(principal, by, PAGE, page_index * PAGE)
    last = -(-page.total // PAGE)
    # Fewer turns pass the filter now.
    if page_index >= last > 0:
        page = store.search(principal, by, PAGE, (last - 1) * PAGE)
        page_index = last - 1
    if not page.total:
        st.info(
            "No turn is like that. Take out a filter to see more.", icon=":material/filter_alt_off:"
        )
        return
    # Under the same key a table of other rows keeps the cell that was chosen, and opens the wrong turn.
    key = f"traces-{page_index}-{page.total}"
    ids = [turn.id for turn in page.turns]
    words = "Turns, newest first; choose one to open its trace"
    draw_rows(table(page.turns), ids, "turn", key, words, _columns(page.longest))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"{page.total:,} of {many(choices.total, 'turn')}. Choose one to open its trace."
        )
        simulated = simulated_words(turn.model for turn in page.turns)
        if simulated:
            st.caption(simulated)
        draw_link("compare", "Compare turns")
        if last > 1:
            st.space("stretch")
            st.pagination(last, key="traces-page")


def table(turns: Iterable[TurnRecord]) -> list[dict[str, Any]]:
    """Returns a row for each turn, for a table; times in seconds, cost in US dollars."""
    rows: list[dict[str, Any]] = []
    for turn in turns:
        question = " ".join(turn.message.split())
        if repeated_turn(turn.session_id):
            question += " (asked again)"
        if turn.measures.broken:
            question += " (broken on purpose)"
        agents = turn.invoked
        if turn.pattern == PLAN_EXECUTE.name:
            # A planner works on no part of the message, nor does a step of a plan that waits.
            agents = agents_asked(run.agent for run in turn.measures.agents)
        elif turn.tool_calls > 0 and not turn.measures.agents:
            # Whoever has the tools of all has asked none of them: the monolith's choice is of tools.
            agents = ()
        row = {
            "Question": question,
            "How it ended": ending_words(turn.status, turn.measures.parts),
            "Pattern": label(turn.pattern),
            "Model": model_words(turn.model),
            "Sub-agents": agent_labels(agents, turn.failed),
            "Seconds": turn.seconds,
            "First words": turn.ttft,
            "Tokens": turn.input_tokens + turn.output_tokens,
            "Cost": turn.cost,
            "When": datetime.fromtimestamp(turn.started_at),
        }
        rows.append(row)
    return rows


def _columns(longest: float) -> Mapping[str, Any]:
    config = st.column_config
    return {
        "Question": config.TextColumn(width=164),
        "How it ended": config.TextColumn(width=118),
        "Pattern": config.TextColumn(width=122),
        "Model": config.TextColumn(width=98),
        "Sub-agents": config.ListColumn(width=160),
        "Seconds": config.ProgressColumn(
            format="%.2f s", min_value=0.0, max_value=max(longest, 0.01), width=85
        ),
        "First words": config.NumberColumn(
            format="%.2f s", width=80, help="Seconds until the first words could be read"
        ),
        "Tokens": config.NumberColumn(format="localized", width=62),
        "Cost": config.NumberColumn(format="$%.3g", width=66, help="Empty where no price is known"),
        "When": config.DatetimeColumn(format="D MMM, HH:mm", width=100),
    }


def _read_filter(choices: TurnChoices, agents: Sequence[str]) -> TurnFilter:
    def pick(
        title: str, key: str, options: Sequence[Any], words: Callable[[Any], str] = label
    ) -> Any:
        return tuple(st.multiselect(title, options, key=key, format_func=words, placeholder="Any"))

    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        text = st.text_input("Words in the question", key="f-text", width=240)
        active = sum(bool(st.session_state.get(key)) for key in FILTERS)
        with st.popover(f"Filters ({active})" if active else "Filters", icon=":material/tune:"):
            endings = pick("How it ended", "f-states", list(ENDING_WORDS), ENDING_WORDS.__getitem__)
            invoked = pick("Sub-agent", "f-agents", agents)
            axes = pick("What went wrong", "f-axes", list(AXES), AXES.__getitem__)
            patterns = pick("Pattern", "f-patterns", choices.patterns)
            models = pick("Model", "f-models", choices.models, model_words)
            late = st.toggle(
                f"Slowest 5 % (≥ {choices.slow:.1f} s)", key="f-slow", disabled=choices.slow <= 0
            )
    return TurnFilter(
        text=text,
        endings=endings,
        agents=invoked,
        axes=axes,
        patterns=patterns,
        models=models,
        session=address.read("conversation"),
        at_least=choices.slow if late else 0.0,
    )
