"""What each metric is called on the page, what it means, and how its value is read."""

from typing import Any, Literal

from kit.core.value import Value
from kit.metrics.alert import MISMATCH
from kit.metrics.summary import Metrics
from kit.ui.shared.waterfall import took
from kit.ui.shared.wording import label

Unit = Literal["count", "seconds", "share", "each", "dollars"]
Group = Literal["Routing", "Sub-agents", "Failures", "Whose data", "Progress", "Spending", "Judged by labels"]
GROUPS: tuple[Group, ...] = ("Routing", "Sub-agents", "Failures", "Whose data", "Progress", "Spending", "Judged by labels")


class Figure(Value):
    """One metric of docs/metrics.md in plain words."""

    metric: str
    group: Group
    label: str
    unit: Unit
    means: str


def _figures(group: Group, *rows: tuple[str, str, Unit, str]) -> tuple[Figure, ...]:
    return tuple(Figure(metric=metric, group=group, label=name, unit=unit, means=means) for metric, name, unit, means in rows)


FIGURES: tuple[Figure, ...] = (
    *_figures(
        "Routing",
        ("turns", "Turns", "count", "Turns that ended in this window; one that runs or was interrupted is not counted."),
        ("intent_count", "Calls in a turn", "count", "Turns by how many calls the orchestrator's model emitted."),
        ("fan_out", "Sub-agents in a turn", "count", "Turns by how many sub-agents ran."),
        ("cap_exceeded_total", "Over the limit", "count", "Turns with more calls than the limit; the rest were left out."),
        (
            "orchestrator_seconds_p95",
            "Orchestrator, 95th percentile",
            "seconds",
            "A turn's deciding calls and the calls that write what is carried over to another sub-agent.",
        ),
        (
            "dispatch_overhead_seconds_p95",
            "Dispatch overhead, 95th percentile",
            "seconds",
            "From a decision to the orchestrator's next call, less the time in which a sub-agent's model or tool was at work.",
        ),
        ("compaction_rate", "Conversations summed up", "share", "Turns in which old turns were summed up."),
    ),
    *_figures(
        "Sub-agents",
        ("sub_agent_invocations", "Asked", "count", "Invocations, failures included."),
        (
            "sub_agent_seconds_p50",
            "p50",
            "seconds",
            "Half of the invocations took no longer, from start to end, failures included.",
        ),
        ("sub_agent_seconds_p95", "p95", "seconds", "Of twenty invocations nineteen took no longer."),
        ("sub_agent_seconds_p99", "p99", "seconds", "Of a hundred invocations ninety-nine took no longer."),
        ("sub_agent_failures_total", "Failed", "count", "Invocations that ended in a failure."),
        ("sub_agent_data_faults_total", "Data faults", "count", "Data calls that failed while the sub-agent still answered."),
        ("sub_agent_status_per_invocation", "Statuses", "each", "Statuses of the vocabulary for each invocation."),
        (
            "sub_agent_first_status_seconds_p95",
            "First status, p95",
            "seconds",
            "From an invocation's start to its first status, the runtime's own word for it included; 2 s is the target.",
        ),
        (
            "sub_agent_longest_silence_seconds",
            "Longest silence",
            "seconds",
            "The longest stretch of any invocation without a status.",
        ),
    ),
    *_figures(
        "Failures",
        (
            "failures_total",
            "Failures by axis",
            "count",
            "Axis 1: invocations that failed. Axis 2: data that failed. Axis 3: turns in which some of several failed.",
        ),
        (
            "model_faults_total",
            "Calls nobody could make",
            "count",
            "Calls of tools that do not exist or with arguments nobody can read: told to the model that made them.",
        ),
        (
            "partial_failure_rate",
            "Partial fan-outs",
            "share",
            "Of turns with two sub-agents and more, those in which some and not all failed or lacked their data.",
        ),
        (
            "fan_out_success_rate",
            "Answers in fan-outs",
            "share",
            "In those turns, answers among the sub-agents that ran: M of N.",
        ),
        (
            "timeout_rate",
            "What took the time of time-outs",
            "share",
            "Of the sub-agents whose time ran out, those that lost it in a slow tool, one slow model call, or long reasoning.",
        ),
        (
            "acknowledgement_rate",
            "How failures were owned up to",
            "share",
            "Of turns that owed it: composed in the answer's own words, recomposed, appended beneath, or rescued by fixed words.",
        ),
    ),
    *_figures(
        "Whose data",
        (
            MISMATCH,
            "Replies for another principal",
            "count",
            "Replies for another principal, unsigned ones where a key is set, and refusals. None of them reached a model.",
        ),
        (
            "ps6.envelope.version_mismatch_total",
            "Replies of another version",
            "count",
            "Replies of a major version that is not understood.",
        ),
        ("envelopes_total", "Replies checked", "count", "Replies of the context service, each checked for its principal."),
    ),
    *_figures(
        "Progress",
        ("status_per_invocation", "Statuses for each invocation", "each", "Statuses of the vocabulary, over all sub-agents."),
        (
            "status_unknown_total",
            "Unknown statuses",
            "count",
            "Statuses outside the vocabulary: kept in the trace, never read by a person.",
        ),
    ),
    *_figures(
        "Spending",
        ("model_calls_total", "Model calls", "count", "Calls of a model, by what they were for."),
        ("model_calls_per_turn", "Model calls a turn", "each", "The same over all turns."),
        ("turns_with_model_call", "Turns with such a call", "count", "Turns in which a model was called for this."),
        ("tokens_total", "Tokens", "count", "Tokens in and out of those calls."),
        ("cost_dollars_total", "Cost", "dollars", "Of those calls; empty where no price is known."),
        ("cost_dollars_per_turn", "Cost a turn", "dollars", "The same over all turns."),
        ("extra_cost_dollars_per_turn", "Extra calls, a turn", "dollars", "Composing, what is carried over, and summaries."),
        ("extra_cost_dollars_per_user", "Extra calls, a user", "dollars", "The same over the users of this window."),
    ),
    *_figures(
        "Judged by labels",
        (
            "routing_accuracy",
            "Routing accuracy",
            "share",
            "Labelled turns in which a vertical was asked, of those in which it should have been or was.",
        ),
        (
            "prior_context_recall",
            "Carried over",
            "share",
            "Entities a label names that crossed to another sub-agent as prior context.",
        ),
        (
            "reference_resolution_rate",
            "References understood",
            "share",
            "Labelled references to something of another vertical that were understood.",
        ),
        ("score", "Scores", "each", "Mean of a label's scores, for each vertical and quality."),
    ),
)
"""Every metric that there is, in the order in which they are read."""


class Line(Value):
    """A metric with its values: (of what, as it is read), or one value of nothing in particular."""

    figure: Figure
    values: tuple[tuple[str, str], ...]


def lines(summary: Metrics) -> tuple[Line, ...]:
    """Returns every metric with its values; one without a value has none."""
    values: dict[str, list[tuple[str, Any]]] = {}
    for row in summary.rows():
        values.setdefault(row["metric"], []).append((row["of"], row["value"]))
    return tuple(
        Line(figure=f, values=tuple((of, read(value, f.unit)) for of, value in values.get(f.metric, ()) if value is not None))
        for f in FIGURES
    )


def read(value: Any, unit: Unit) -> str:
    """Returns a value as a person reads it."""
    match unit:
        case "count":
            return f"{value:,}"
        case "seconds":
            return took(value)
        case "share":
            return f"{value:.0%}" if value in (0, 1) or value >= 0.1 else f"{value:.1%}"
        case "each":
            return f"{value:.2f}".rstrip("0").rstrip(".")
        case "dollars":
            return f"${value:,.4f}" if value else "$0"


def agents_table(summary: Metrics) -> tuple[list[str], list[list[str]]]:
    """Returns head and rows of the metrics that each sub-agent has, the slowest first."""
    figures = [figure for figure in FIGURES if figure.group == "Sub-agents"]
    values = {(row["metric"], row["of"]): row["value"] for row in summary.rows()}

    def cell(agent: str, figure: Figure) -> str:
        value = values.get((figure.metric, agent))
        return "–" if value is None else read(value, figure.unit)

    agents = [one.agent for one in sorted(summary.agents, key=lambda one: -one.latency.p95)]
    rows = [[label(agent), *(cell(agent, figure) for figure in figures)] for agent in agents]
    return ["Sub-agent", *(figure.label for figure in figures)], rows
