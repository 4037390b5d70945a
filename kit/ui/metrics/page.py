"""The page Metrics: sums over the stored turns of the visitor's tenant, each number beside its meaning."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.context import Principal
from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.errors import DataError
from kit.metrics import catalogue
from kit.metrics.alert import alerts
from kit.metrics.catalogue import Group, Metric, Unit
from kit.metrics.estimate import Estimate
from kit.metrics.sample import Label
from kit.metrics.summary import Metrics, metrics
from kit.metrics.watchdog import Silence
from kit.service.monitor import ActiveAlert
from kit.stores.tally import Mismatch, Tally
from kit.ui.metrics.plans import draw_plans, watch_plans
from kit.ui.shared.frame import draw_link, with_store
from kit.ui.shared.host import Host
from kit.ui.shared.template import render, table_html
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import label, literal, moment, simulated_words, took

WINDOWS = {"Last hour": 3_600.0, "Last day": 86_400.0, "Last week": 604_800.0, "All time": None}
"""Words -> seconds back from now; None: everything stored."""
ALERTS = 20
"""Alerts that are listed, the newest first."""
_AXES = {
    "axis 1: invocation": "A sub-agent failed",
    "axis 2: data": "Data failed",
    "axis 3: partial": "Some of several failed",
}


@with_store
def page(host: Host, _: DeltaGenerator) -> None:
    """Draws the page."""
    store = host.kit.store
    principal = visitor(host)
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
    # One pass over the stored sums: the alert, the models and every metric are read from it.
    tally = store.tally(principal.tenant_id, since)
    if not tally.counts["turns",]:
        _nothing(principal, ever=back is None)
        return
    watch = host.documents(lambda stores: watch_plans(stores, principal.tenant_id, back, now))
    _alerts(watch.alerts, tally.mismatches, now, principal)
    _silences(host.silences(since or 0.0))
    summary = metrics(store, since, principal.tenant_id, _labels(), tally)
    turns = many(tally.counts["turns",], "ended turn")
    st.caption(
        f"{turns} of {principal.tenant_id}, all of its people. Percentiles are by nearest rank."
    )
    models = tally.of("model")
    simulated = simulated_words(models)
    if simulated:
        st.caption(simulated)
    # Sums that an older version stored know no models.
    unknown = tally.counts["turns",] - sum(models.values())
    if unknown:
        st.caption(
            f"{many(unknown, 'older turn')}: the model is not counted, figures may be simulated."
        )
    draw_plans(watch)
    _groups(summary, tally)


def _nothing(principal: Principal, *, ever: bool) -> None:
    if not ever:
        st.info("No turn ended in this window. Choose a longer one.", icon=":material/schedule:")
        return
    st.markdown(
        f"Every turn that ends is measured here. {principal.tenant_id} has none yet: ask something in the chat first."
    )
    draw_link(st.empty(), "chat", "Go to the chat", ":material/chat:")


def _alerts(
    of_plans: Sequence[ActiveAlert],
    mismatches: Sequence[Mismatch],
    now: float,
    principal: Principal,
) -> None:
    """Says in one headline whether all is well, else what is not, and since when."""
    words: list[str] = []
    for alert in of_plans:
        when = "now" if alert.since is None else f"since {moment(alert.since)}"
        words.append(f"**Alert {when}.** In the last hour {alert.firing.sentence}.")
    if words:
        st.error("\n\n".join(words), icon=":material/monitor_heart:")
    if mismatches:
        _mismatches(mismatches, now, principal)
    elif not of_plans:
        st.success(
            "All is well: no alert fires. No reply for another principal came in.",
            icon=":material/verified_user:",
        )


def _mismatches(mismatches: Sequence[Mismatch], now: float, principal: Principal) -> None:
    firing = alerts(mismatches, now=now)
    every = alerts(mismatches)
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
        visitor_turns: set[str] = set()
        for mismatch in mismatches:
            if mismatch.user_id == principal.user_id:
                visitor_turns.add(mismatch.turn_id)
        if len(every) > ALERTS:
            st.caption(f"The newest {ALERTS}; `{command('metrics')}` lists all.")
        for alert in every[: -ALERTS - 1 : -1]:
            turns = many(len(alert.turn_ids), "turn")
            begin = f"From {moment(alert.since)} on, within five minutes"
            st.markdown(f"{begin}: {_replies(alert.count)} in {turns}")
            for turn_id in alert.turn_ids:
                if turn_id in visitor_turns:
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
            st.markdown(f"{moment(silence.at)}, {silence.seconds:.2f} s")
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


def _groups(summary: Metrics, tally: Tally) -> None:
    with _draw_group("Routing", summary):
        _bars(summary, "intent_count", "Turns by calls in them", _calls)
        _bars(summary, "fan_out", "Turns by sub-agents that ran", _sub_agents)
    st.markdown("### Latency")
    st.html(group_html("Latency", summary))
    _published(tally)
    st.markdown("### Sub-agents")
    _agents(summary)
    with _draw_group("Failures", summary):
        _bars(summary, "failures_total", "Failures by axis", _AXES.__getitem__)
        _bars(summary, "acknowledgement_rate", "How failures were owned up to", str)
    for column, group in zip(st.columns(2, gap="large"), ("Whose data", "Progress"), strict=True):
        column.markdown(f"### {group}")
        column.html(group_html(group, summary))
    st.markdown("### Spending")
    st.html(group_html("Spending", summary))
    st.markdown("### Judged by labels")
    st.html(group_html("Judged by labels", summary, empty="needs labels"))
    st.file_uploader(
        "Labels, a line of JSON for each turn (docs/metrics.md says which fields)",
        type=["jsonl"],
        key="m-labels",
    )


def _draw_group(group: Group, summary: Metrics) -> DeltaGenerator:
    """Draws the figures of a group, and returns the column for its charts."""
    st.markdown(f"### {group}")
    words_column, chart_column = st.columns([6, 5], gap="large")
    words_column.html(group_html(group, summary))
    return chart_column


def _bars(summary: Metrics, metric: str, title: str, name: Callable[[str], str]) -> None:
    """Draws the figures of a metric as bars; `name` returns the words of what a figure is of."""
    from kit.ui.metrics.charts import draw_bars

    values: dict[str, float] = {}
    is_share = False
    for subject, figure in summary.figures[metric].items():
        if isinstance(figure, Estimate):
            is_share = True
            values[name(subject)] = figure.value
        else:
            values[name(subject)] = figure or 0
    draw_bars(values, title, share=is_share)


def _calls(count: str) -> str:
    if count == "1":
        return "1 call"
    return f"{count} calls"


def _sub_agents(count: str) -> str:
    return many(int(count), "sub-agent")


def _published(tally: Tally) -> None:
    """Draws the published latencies beside ours."""
    from kit.bench.latency_baseline import latency_baselines

    rows: list[tuple[str, ...]] = []
    for baseline in latency_baselines():
        ours: list[str] = []
        for pattern, times in baseline.ours(tally).items():
            ours.append(f"{pattern} {took(times.p50)} of {times.count}")
        here = ", ".join(ours) or "none yet"
        rows.append((baseline.says, baseline.of, baseline.sample, here))
    head = ("Published", "From", "What would settle it", "Here, p50")
    st.html(table_html("Published latencies", rows, head, kind="metrics rows"))
    st.caption("Turns of the offline stand-in, which is no model, settle nothing about a paid one.")


def _agents(summary: Metrics) -> None:
    """Draws what each sub-agent took and did, the slowest first."""
    from kit.ui.metrics.charts import draw_latencies

    columns = [metric for metric in catalogue.METRICS if metric.group == "Sub-agents"]
    p95 = summary.numbers("sub_agent_seconds_p95")
    agents = sorted(p95, key=lambda agent: p95[agent] or 0.0, reverse=True)
    rows: list[list[str]] = []
    if agents:
        p50 = summary.numbers("sub_agent_seconds_p50")
        times = [(label(agent), p50[agent] or 0.0, p95[agent] or 0.0) for agent in agents]
        draw_latencies(times, "One invocation, p50 to p95")
        for agent in agents:
            row = [label(agent)]
            for column in columns:
                row.append(read(summary.numbers(column.name)[agent], column.unit))
            rows.append(row)
    else:
        st.markdown("No sub-agent was asked in this window.")
    head = ["Sub-agent", *(column.label for column in columns)]
    st.html(render("sub_agents", rows=rows, head=head, metrics=columns))


def group_html(group: Group, summary: Metrics, empty: str = "none yet") -> str:
    """Returns the metrics of a group with their values; `empty` stands where a metric has none."""
    rows = summary.rows()
    metrics: list[tuple[Metric, list[tuple[str, str]]]] = []
    for metric in catalogue.METRICS:
        if metric.group == group:
            values = [(row["of"], row["value"]) for row in rows if row["metric"] == metric.name]
            figures: list[tuple[str, str]] = []
            for subject, value in _once(values):
                if value is not None:
                    figures.append((subject, read(value, metric.unit)))
            metrics.append((metric, figures))
    return render("metrics", metrics=metrics, empty=empty)


def _once(values: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Leaves out turns that asked sub-agents where every turn did: their value stands there already."""
    answered_alone: set[str] = set()
    for subject, _ in values:
        if subject.endswith(", nobody asked"):
            answered_alone.add(subject.removesuffix(", nobody asked"))
    distinct: list[tuple[str, Any]] = []
    for subject, value in values:
        pattern = subject.removesuffix(", sub-agents asked")
        if pattern == subject or pattern in answered_alone:
            distinct.append((subject, value))
    return distinct


def read(value: Any, unit: Unit) -> str:
    """Returns a value as a person reads it; a dash where there is none."""
    if value is None:
        return "–"
    match unit:
        case "count":
            return f"{value:,}"
        case "seconds":
            return took(value)
        case "share":
            if value in (0, 1) or value >= 0.1:
                return f"{value:.0%}"
            return f"{value:.1%}"
        case "each":
            return f"{value:.2f}".rstrip("0").rstrip(".")
        case "dollars":
            if value:
                return f"${value:,.4f}"
            return "$0"
