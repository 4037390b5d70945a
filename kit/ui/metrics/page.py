"""The page Metrics: sums over the stored turns of the visitor's tenant, each number beside its meaning."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.context import Principal
from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.errors import DataError
from kit.metrics.alert import alerts
from kit.metrics.latency import Spread
from kit.metrics.summary import Label, Metrics, metrics
from kit.metrics.watchdog import Silence
from kit.stores.tally import Mismatch
from kit.ui.metrics.figures import FIGURES, GROUPS, Figure, Group, Line, Unit, agents_table, lines
from kit.ui.shared.frame import draw_link, visitor, with_host
from kit.ui.shared.host import Host
from kit.ui.shared.table import row_html, table_html
from kit.ui.shared.wording import label, literal, took

WINDOWS = {"Last hour": 3_600.0, "Last day": 86_400.0, "Last week": 604_800.0, "All time": None}
"""Words -> seconds back from now; None: everything stored."""
ALERTS = 20
"""Alerts that are listed, the newest first."""
_AXES = {
    "invocation": "A sub-agent failed",
    "data": "Data failed",
    "partial": "Some of several failed",
}


@with_host
def page(host: Host, _: DeltaGenerator) -> None:
    """Draws the page."""
    store = host.kit.store
    who = visitor(host)
    st.markdown("## Metrics")
    window = st.segmented_control(
        "Time window", list(WINDOWS), default="All time", key="m-window", required=True
    )
    back = WINDOWS[window]
    now = time.time()
    if back is not None:
        since = now - back
    else:
        since = None
    tally = store.tally(who.tenant_id, since)
    if not tally.counts["turns",]:
        _nothing(who, ever=back is None)
        return
    _alert(tally.mismatches, now, who)
    _silences(host.silences(since or 0.0))
    summary = metrics(store, since, who.tenant_id, _labels(), tally)
    st.caption(
        f"{many(summary.turns, 'ended turn')} of {who.tenant_id}, all of its people. Percentiles are by nearest rank."
    )
    _groups(summary)


def _nothing(who: Principal, *, ever: bool) -> None:
    if not ever:
        st.info("No turn ended in this window. Choose a longer one.", icon=":material/schedule:")
        return
    st.markdown(
        f"Every turn that ends is measured here. {who.tenant_id} has none yet: ask something in the chat first."
    )
    draw_link(st.empty(), "chat", "Go to the chat", ":material/chat:")


def _alert(mismatches: Sequence[Mismatch], now: float, who: Principal) -> None:
    firing = alerts(mismatches, now=now)
    every = alerts(mismatches)
    if not every:
        st.success(
            "No alert. No reply for another principal came in.", icon=":material/verified_user:"
        )
        return
    count = sum(alert.count for alert in every)
    sentence = (
        f"{_replies(count)} for another principal, blocked before any model saw "
        f"{'it' if count == 1 else 'them'}."
    )
    if firing:
        now_words = f"**Alert now.** In the last five minutes: {_replies(firing[-1].count)}. In all: {sentence}"
        st.error(now_words, icon=":material/gpp_maybe:")
    else:
        st.warning(f"**No alert now.** Before: {sentence}", icon=":material/gpp_maybe:")
    with st.expander(many(len(every), "alert"), icon=":material/list:"):
        own: set[str] = set()
        for mismatch in mismatches:
            if mismatch.user_id == who.user_id:
                own.add(mismatch.turn_id)
        if len(every) > ALERTS:
            st.caption(f"The newest {ALERTS}; `{command('metrics')}` lists all.")
        for alert in every[: -ALERTS - 1 : -1]:
            when = datetime.fromtimestamp(alert.since).strftime("%d %b %Y, %H:%M:%S")
            st.markdown(
                f"From {when} on, within five minutes: {_replies(alert.count)} in {many(len(alert.turn_ids), 'turn')}"
            )
            for turn_id in alert.turn_ids:
                if turn_id in own:
                    draw_link(
                        st.empty(),
                        "traces",
                        f"Trace {turn_id}",
                        ":material/account_tree:",
                        turn=turn_id,
                    )


def _silences(noted: Sequence[Silence]) -> None:
    """Says in red how often the loop was held by one piece of code, and by which."""
    if not noted:
        return
    longest = max(silence.seconds for silence in noted)
    st.error(
        f"**The loop was silent {many(len(noted), 'time')}**, for {longest:.2f} s at most. Meanwhile no turn moved.",
        icon=":material/heart_broken:",
    )
    with st.expander("What held it", icon=":material/list:"):
        if len(noted) > ALERTS:
            st.caption(f"The newest {ALERTS} of {len(noted)}.")
        for silence in reversed(noted[-ALERTS:]):
            when = datetime.fromtimestamp(silence.at).strftime("%d %b %Y, %H:%M:%S")
            st.markdown(f"{when}, {silence.seconds:.2f} s")
            st.code("\n".join(silence.stack), language=None)


def _replies(count: int) -> str:
    return f"{count} repl{'y' if count == 1 else 'ies'}"


def _labels() -> Sequence[Label]:
    file = st.session_state.get("m-labels")
    if file is None:
        return ()
    from kit.bench.metrics_report import labels_of

    try:
        return labels_of(file.getvalue(), file.name)
    except DataError as error:
        st.error(literal(f"{error}. Nothing of the file was counted."), icon=":material/error:")
        return ()


def _groups(summary: Metrics) -> None:
    from kit.ui.metrics.charts import draw_bars

    groups: dict[Group, list[Line]] = {
        group: [line for line in lines(summary) if line.figure.group == group] for group in GROUPS
    }
    with _draw_group("Routing", groups):
        draw_bars(
            {f"{name} call{'s' * (name != '1')}": count for name, count in summary.intents.items()},
            "Turns by calls in them",
        )
        draw_bars(
            {many(size, "sub-agent"): count for size, count in summary.fan_outs.items()},
            "Turns by sub-agents that ran",
        )
    st.markdown("### Latency")
    st.html(_lines_html(groups["Latency"]))
    _published(summary)
    st.markdown("### Sub-agents")
    _agents(summary)
    with _draw_group("Failures", groups):
        draw_bars({_AXES[axis]: count for axis, count in summary.axes.items()}, "Failures by axis")
        if summary.acknowledgements:
            paths = {path: rate.value or 0.0 for path, rate in summary.acknowledgements.items()}
            draw_bars(paths, "How failures were owned up to", share=True)
    for place, group in zip(st.columns(2, gap="large"), ("Whose data", "Progress"), strict=True):
        place.markdown(f"### {group}")
        place.html(_lines_html(groups[group]))
    st.markdown("### Spending")
    st.html(_lines_html(groups["Spending"]))
    st.markdown("### Judged by labels")
    st.html(_lines_html(groups["Judged by labels"], empty="needs labels"))
    st.file_uploader(
        "Labels, a line of JSON for each turn (docs/metrics.md says which fields)",
        type=["jsonl"],
        key="m-labels",
    )


def _published(summary: Metrics) -> None:
    """Draws the published latencies beside ours."""
    from kit.bench.latency_baseline import latency_baselines

    rows = (
        row_html(
            baseline.says,
            escape(baseline.of),
            escape(baseline.sample),
            _ours(baseline.ours(summary.latencies)),
        )
        for baseline in latency_baselines()
    )
    head = ("Published", "From", "What would settle it", "Here, p50")
    st.html(f'<div class="metrics">{table_html("Published latencies", rows, head)}</div>')
    st.caption("Turns of the offline stand-in, which is no model, settle nothing about a paid one.")


def _ours(spreads: Sequence[tuple[str, Spread]]) -> str:
    return escape(
        ", ".join(f"{pattern} {took(one.p50)} of {one.count}" for pattern, one in spreads)
        or "none yet"
    )


def _draw_group(group: Group, groups: Mapping[Group, list[Line]]) -> DeltaGenerator:
    """Draws the figures of a group, and returns the place for its charts."""
    st.markdown(f"### {group}")
    words_column, chart_column = st.columns([6, 5], gap="large")
    words_column.html(_lines_html(groups[group]))
    return chart_column


def _agents(summary: Metrics) -> None:
    from kit.ui.metrics.charts import draw_latencies

    if not summary.agents:
        st.markdown("No sub-agent was asked in this window.")
    else:
        slowest = sorted(summary.agents, key=lambda one: -one.latency.p95)
        spans = [(label(agent.agent), agent.latency.p50, agent.latency.p95) for agent in slowest]
        draw_latencies(spans, "One invocation, p50 to p95")
    head, rows = agents_table(summary)
    means = "".join(_meaning(figure) for figure in FIGURES if figure.group == "Sub-agents")
    if rows:
        table = table_html(
            "Sub-agents", (row_html(name, *map(escape, cells)) for name, *cells in rows), head
        )
    else:
        table = ""
    st.html(
        f'<div class="metrics">{table}<details><summary>What the columns mean</summary><dl>{means}</dl></details></div>'
    )


def _meaning(figure: Figure) -> str:
    name = escape(figure.metric)
    return (
        f'<div title="{name}" '
        f'data-metric="{name}"><dt>{escape(figure.label)}</dt><dd>{escape(figure.means)}</dd></div>'
    )


def _lines_html(group: Sequence[Line], empty: str = "none yet") -> str:
    return '<dl class="metrics">' + "".join(_line_html(line, empty) for line in group) + "</dl>"


def _line_html(line: Line, empty: str) -> str:
    figure = line.figure
    value = "".join(_value(of, text, figure.unit) for of, text in line.values) or f"<i>{empty}</i>"
    name = escape(figure.metric)
    words = f'<dt>{escape(figure.label)}</dt><dd class="value">{value}</dd><dd>{escape(figure.means)}</dd>'
    return f'<div title="{name}" data-metric="{name}">{words}</div>'


def _value(of: str, text: str, unit: Unit) -> str:
    if of[:1].isdigit() and unit == "share":
        return f"<span><b>{escape(text)}</b> of {escape(of)}</span>"
    return f"<span>{escape(of)} <b>{escape(text)}</b></span>"
