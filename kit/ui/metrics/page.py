"""The page Metrics: how the stored turns of the visitor's tenant did in one sentence, over time and in twelve
figures; every other number is folded away, beside its meaning."""

import time
from collections.abc import Sequence
from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.context import Principal
from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.outcome import Usage
from kit.core.record import TurnRecord
from kit.metrics import catalogue
from kit.metrics.alert import alerts
from kit.metrics.catalogue import Group, Metric, Unit
from kit.metrics.estimate import percent_words, share
from kit.metrics.latency import Spread, spread
from kit.metrics.summary import Metrics, metrics
from kit.metrics.watchdog import Silence
from kit.stores.tally import Mismatch, Tally
from kit.ui.metrics.charts import draw_endings, draw_times
from kit.ui.metrics.over_time import points_of
from kit.ui.metrics.plans import PlanWatch, draw_plans, watch_plans
from kit.ui.shared.frame import draw_link, with_store
from kit.ui.shared.host import Host
from kit.ui.shared.template import render, table_html
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import (
    cost_in_words,
    dollars,
    label,
    moment,
    simulated_words,
    took,
)

WINDOWS = {"Last hour": 3_600.0, "Last day": 86_400.0, "Last week": 604_800.0, "All time": None}
"""Words -> seconds back from now; None: everything stored."""
NEWEST = 5_000
"""Turns that the lines over time are drawn of: older ones only count."""
SILENCES = 20
"""Silences of the server that are listed, the newest first."""


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
    st.markdown(f"### {_headline(tally)}")
    _alerts(watch, tally.mismatches, now)
    _silences(host.silences(since or 0.0))
    summary = metrics(store, since, principal.tenant_id, tally=tally)
    st.caption(
        f"Turns of {principal.tenant_id}, all of its people. Percentiles are by nearest rank. Behind a share, in "
        "brackets: between which shares the true one lies, at 95% confidence. "
        f"{simulated_words(tally.of('model'))}"
    )
    turns = store.turns(tenant_id=principal.tenant_id, limit=NEWEST)
    _over_time([turn for turn in turns if turn.started_at >= (since or 0.0)], now)
    with st.container(key="m-figures"):
        _figures(tally)
    draw_plans(watch)
    fold = st.expander(
        "Every figure, and what it means",
        icon=":material/list:",
        key="m-all",
        on_change="rerun",
    )
    # What nobody has unfolded costs nothing.
    if fold.open:
        with fold:
            _groups(summary, tally)


def _headline(tally: Tally) -> str:
    """Says in one sentence how turns ended, and whether the answers owned up."""
    endings = tally.of("ending")
    turns = tally.counts["turns",]
    whole = endings.get("answered", 0)
    partly = endings.get("partly", 0)
    waiting = endings.get("paused", 0)
    sentence = f"{many(turns, 'turn')}: {whole:,} answered whole, {partly:,} in part"
    others = turns - whole - partly - waiting
    if others:
        sentence += f", {others:,} not"
    if waiting:
        sentence += f", {waiting:,} waiting for a yes or no"
    debts = tally.of("acknowledged")
    silent = debts.get("unsaid", 0)
    if silent:
        return f"{sentence}. {silent:,} of {sum(debts.values()):,} do not say what is missing."
    if debts:
        return f"{sentence}. Every answer that lacked a part that was counted says so."
    return f"{sentence}."


def _over_time(turns: Sequence[TurnRecord], now: float) -> None:
    points = points_of(turns, now)
    if len(points) < 2:
        return
    first_column, second_column = st.columns(2, gap="large")
    with first_column:
        draw_endings(points)
    with second_column:
        draw_times(points)


def _figures(tally: Tally) -> None:
    """Draws three rows of figures: what became of turns, what they took, and what they cost and kept apart."""
    counts = tally.counts
    turns = counts["turns",]
    endings = tally.of("ending")
    ended_count = turns - endings.get("paused", 0)
    whole = _spread_of(tally, "turn")
    first_text = _spread_of(tally, "first_text")
    overhead = _spread_of(tally, "overhead")
    calls = sum(tally.of("model_calls").values())
    spending = Usage(
        model_calls=calls,
        cost=sum(tally.dollars.values()) if tally.dollars else None,
        estimated=any(tally.of("estimated").values()),
        untold_costs=sum(tally.of("untold_costs").values()),
    )
    rows = (
        (
            ("Answered whole", percent_words(share(endings.get("answered", 0), ended_count))),
            ("Sub-agents that failed", f"{sum(tally.of('failures').values()):,}"),
            ("Over the limit", f"{counts['over_cap',]:,}"),
            ("Lost in silence", f"{tally.of('acknowledged').get('unsaid', 0):,}"),
        ),
        (
            ("First words, p50", read(first_text and first_text.p50, "seconds")),
            ("Whole turn, p50", read(whole and whole.p50, "seconds")),
            ("Whole turn, p95", read(whole and whole.p95, "seconds")),
            ("Dispatch overhead, p95", read(overhead and overhead.p95, "seconds")),
        ),
        (
            ("Model calls a turn", f"{calls / turns:.1f}"),
            ("Cost", read(spending.cost, "dollars")),
            ("Replies checked", f"{counts['envelopes',]:,}"),
            ("Of somebody else, blocked", f"{len(tally.mismatches):,}"),
        ),
    )
    for row in rows:
        for column, (name, value) in zip(st.columns(4), row, strict=True):
            column.metric(name, value, border=True)
    if spending.estimated or spending.untold_costs:
        st.caption(f"Cost: {cost_in_words(spending)}.")


def _spread_of(tally: Tally, kind: str) -> Spread | None:
    seconds: list[float] = []
    for key, samples in tally.samples.items():
        if key[0] == kind:
            seconds += samples
    return spread(seconds)


def _nothing(principal: Principal, *, ever: bool) -> None:
    if not ever:
        st.info("No turn ended in this window. Choose a longer one.", icon=":material/schedule:")
        return
    st.markdown(
        f"Every turn that ends is measured here. {principal.tenant_id} has none yet: ask something in the chat first."
    )
    draw_link("chat", "Go to the chat")


def _alerts(
    of_plans: PlanWatch,
    mismatches: Sequence[Mismatch],
    now: float,
) -> None:
    """Says what is not well, and since when, where an alert fires; else in a line what came before."""
    words: list[str] = []
    for alert in of_plans.alerts:
        when = "now" if alert.since is None else f"since {moment(alert.since)}"
        words.append(f"**Alert {when}.** In the last hour {alert.firing.sentence}.")
    if words:
        st.error("\n\n".join(words), icon=":material/monitor_heart:")
    count = len(mismatches)
    blocked = "it" if count == 1 else "them"
    sentence = f"{_replies(count)} for another principal, blocked before any model saw {blocked}."
    firing = alerts(mismatches, now=now)
    if firing:
        recent = f"**Alert now.** In the last five minutes: {_replies(firing[-1].count)}."
        st.error(f"{recent} In all: {sentence}", icon=":material/gpp_maybe:")
    elif words:
        return
    elif mismatches:
        st.caption(f"{of_plans.quiet} Earlier there were {sentence}")
    else:
        st.caption(f"{of_plans.quiet} No reply for another principal came in.")


def _silences(noted: Sequence[Silence]) -> None:
    """Says in red how often one piece of code held up all others, and which it was."""
    if not noted:
        return
    longest = max(silence.seconds for silence in noted)
    st.error(
        f"**The server stood still {many(len(noted), 'time')}**, for {longest:.2f} s at most: meanwhile no turn moved. "
        "A busy machine or blocking code does that.",
        icon=":material/heart_broken:",
    )
    with st.expander("What it was at", icon=":material/list:"):
        for silence in reversed(noted[-SILENCES:]):
            st.markdown(f"{moment(silence.at)}, {silence.seconds:.2f} s")
            st.code("\n".join(silence.stack), language=None)


def _replies(count: int) -> str:
    return f"{count} repl{'y' if count == 1 else 'ies'}"


def _groups(summary: Metrics, tally: Tally) -> None:
    for group in get_args(Group):
        st.markdown(f"### {group}")
        if group == "Sub-agents":
            _agents(summary)
            continue
        empty = (
            f"needs labels: {command('data', 'metrics', '--labels', 'FILE')}"
            if group == "Judged by labels"
            else "none yet"
        )
        st.html(group_html(group, summary, empty))
        if group == "Latency":
            _published(tally)


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
    columns = [metric for metric in catalogue.METRICS if metric.group == "Sub-agents"]
    p95 = summary.numbers("sub_agent_seconds_p95")
    agents = sorted(p95, key=lambda agent: p95[agent] or 0.0, reverse=True)
    rows: list[list[str]] = []
    for agent in agents:
        row = [label(agent)]
        for column in columns:
            row.append(read(summary.numbers(column.name)[agent], column.unit))
        rows.append(row)
    if not agents:
        st.markdown("No sub-agent was asked in this window.")
    head = ["Sub-agent", *(column.label for column in columns)]
    st.html(render("sub_agents", rows=rows, head=head, metrics=columns))


def group_html(group: Group, summary: Metrics, empty: str) -> str:
    """Returns the metrics of a group with their values; `empty` stands where a metric has none."""
    metrics: list[tuple[Metric, list[tuple[str, str]]]] = []
    for metric in catalogue.METRICS:
        if metric.group == group:
            figures: list[tuple[str, str]] = []
            for subject, figure in summary.figures_of(metric):
                if figure is not None:
                    figures.append((subject, read(figure, metric.unit)))
            metrics.append((metric, figures))
    return render("metrics", metrics=metrics, empty=empty)


def read(value: Any, unit: Unit) -> str:
    """Returns a value, of a share its estimate, as a person reads it; a dash where there is none."""
    if value is None:
        return "–"
    match unit:
        case "count":
            return f"{value:,}"
        case "seconds":
            return took(value)
        case "share":
            return percent_words(value)
        case "each":
            return f"{value:.2f}".rstrip("0").rstrip(".")
        case "dollars":
            return dollars(value)
