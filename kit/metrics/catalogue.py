"""Every metric that there is: its name, its unit, its words, and how it is measured.

A new metric is one more entry of `METRICS`. The page Metrics, `python -m kit data metrics` and
`metrics(store).rows()` read this list and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from kit.core.bodies.speech import Acknowledgement
from kit.core.display.turn_parts import ENDING_WORDS
from kit.core.timeout import Cause
from kit.metrics import labelled, spending
from kit.metrics.alert import MISMATCH
from kit.metrics.estimate import share
from kit.metrics.latency import PATHS, Spread, TimedPart, p95
from kit.metrics.sample import Figures, Number, Sample

Unit = Literal["count", "seconds", "share", "each", "dollars"]
Group = Literal[
    "Routing",
    "Latency",
    "Sub-agents",
    "Failures",
    "Whose data",
    "Progress",
    "Spending",
    "Judged by labels",
]


Measure = Callable[[Sample], Figures]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    group: Group
    label: str
    unit: Unit
    means: str
    measure: Measure
    words: str = "{of}"
    """How a row names what a figure is of; `{n}` is how many items a share is made from."""
    noun: str = ""
    """What one of these items is called."""


def _count(name: str) -> Measure:
    """Measures one of the sums over all turns."""
    return lambda sample: {"": sample.tally.counts[name,]}


def _share_of(part: str, whole: str) -> Measure:
    """Measures one of the sums as a share of another."""

    def measure(sample: Sample) -> Figures:
        counts = sample.tally.counts
        return {"": share(counts[part,], counts[whole,])}

    return measure


def _shares(kind: str, *names: str) -> Measure:
    """Measures how often each of these was the case, of the times when one of the kind was."""

    def measure(sample: Sample) -> Figures:
        counts = sample.tally.of(kind)
        total = sum(counts.values())
        return {name: share(counts.get(name, 0), total) for name in names}

    return measure


def _endings(sample: Sample) -> Figures:
    endings = sample.tally.of("ending")
    figures: dict[str, Number] = {}
    for ending, words in ENDING_WORDS.items():
        if endings.get(ending):
            figures[words] = endings[ending]
    return figures


def _calls_in_a_turn(sample: Sample) -> Figures:
    calls = {"0": 0, "1": 0, "2": 0, "3+": 0}
    return {**calls, **sample.tally.of("intents")}


def _agents_in_a_turn(sample: Sample) -> Figures:
    figures: dict[str, Number] = {}
    for size, turns in sorted(sample.tally.of("fan_out").items(), key=lambda pair: int(pair[0])):
        if turns:
            figures[size] = turns
    return figures


def _orchestrator(sample: Sample) -> Figures:
    times: list[float] = []
    for key, seconds in sample.tally.samples.items():
        if key[0] == "routing":
            times += seconds
    return {"": p95(times)}


def _overhead(sample: Sample) -> Figures:
    return {"": p95(sample.tally.samples.get(("overhead",), ()))}


def _verbatim(sample: Sample) -> Figures:
    repeats = sample.tally.of("repeats")
    return {"": share(repeats.get("True", 0), sum(repeats.values()))}


PERCENTILES = {
    "p50": "Half of the {items} took no longer",
    "p95": "Of twenty {items} nineteen took no longer",
    "p99": "Of a hundred {items} ninety-nine took no longer",
}


def _latency(part: TimedPart, label: str, means: str) -> tuple[Metric, ...]:
    """Returns the percentiles of a part of a turn: a metric each, of every pattern and path."""

    # A function of its own: a closure in the loop would see the last percentile alone.
    def measure_of(percentile: str) -> Measure:
        def measure(sample: Sample) -> Figures:
            figures: dict[str, Number] = {}
            for path in PATHS:
                for pattern, times in sample.turn_times(part, path).items():
                    figures[f"{pattern}, {path}"] = getattr(times, percentile)
            return dict(sorted(figures.items()))

        return measure

    metrics: list[Metric] = []
    for percentile, words in PERCENTILES.items():
        metric = Metric(
            name=f"{part}_seconds_{percentile}",
            group="Latency",
            label=f"{label}, {percentile}",
            unit="seconds",
            means=f"{words.format(items='turns')}: {means}.",
            measure=measure_of(percentile),
        )
        metrics.append(metric)
    return tuple(metrics)


def _of_agents(figure: Callable[[Sample, str, Spread], Number]) -> Measure:
    """Measures something of each sub-agent, from its name and the times of its invocations."""

    def measure(sample: Sample) -> Figures:
        figures: dict[str, Number] = {}
        for agent, times in sample.agent_times.items():
            figures[agent] = figure(sample, agent, times)
        return figures

    return measure


def _agent_count(name: str) -> Measure:
    """Measures one of the sums over the invocations of each sub-agent."""
    return _of_agents(lambda sample, agent, _: sample.tally.counts[name, agent])


def _agent_times(figure: str) -> Measure:
    return _of_agents(lambda _, __, times: getattr(times, figure))


def _statuses_of_agent(sample: Sample, agent: str, times: Spread) -> Number:
    return sample.tally.counts["statuses", agent] / times.count


def _first_status(sample: Sample, agent: str, times: Spread) -> Number:
    return p95(sample.tally.samples.get(("first_status", agent), ()))


def _longest_silence(sample: Sample, agent: str, times: Spread) -> Number:
    return sample.tally.silences[agent]


def _failures(sample: Sample) -> Figures:
    axes = sample.tally.of("axis")
    faults = sum(sample.tally.of("data_faults").values())
    return {
        "axis 1: invocation": axes.get("invocation", 0),
        "axis 2: data": axes.get("data", 0) + faults,
        "axis 3: partial": sample.tally.counts["fan_outs_partial",],
    }


def _mismatches(sample: Sample) -> Figures:
    return {"": len(sample.tally.mismatches)}


def _unknown_statuses(sample: Sample) -> Figures:
    return {"": sum(sample.tally.of("unknown_statuses").values())}


METRICS: tuple[Metric, ...] = (
    Metric(
        "turns",
        "Routing",
        "Turns",
        "count",
        "Turns that ended in this window; one that runs or was interrupted is not counted.",
        _count("turns"),
    ),
    Metric(
        "turns_by_ending",
        "Routing",
        "How turns ended",
        "count",
        "Turns by how they ended, in the words of the chat. Partly answered are those of which some parts "
        "were answered and others not.",
        _endings,
    ),
    Metric(
        "intent_count",
        "Routing",
        "Calls in a turn",
        "count",
        "Turns by how many calls the orchestrator's model emitted.",
        _calls_in_a_turn,
    ),
    Metric(
        "fan_out",
        "Routing",
        "Sub-agents in a turn",
        "count",
        "Turns by how many sub-agents ran.",
        _agents_in_a_turn,
    ),
    Metric(
        "cap_exceeded_total",
        "Routing",
        "Over the limit",
        "count",
        "Turns with more calls than the limit; the rest were left out.",
        _count("over_cap"),
    ),
    Metric(
        "orchestrator_seconds_p95",
        "Routing",
        "Orchestrator, 95th percentile",
        "seconds",
        "A turn's deciding calls and the calls that write what is carried over to another sub-agent.",
        _orchestrator,
    ),
    Metric(
        "dispatch_overhead_seconds_p95",
        "Routing",
        "Dispatch overhead, 95th percentile",
        "seconds",
        "From a decision to the orchestrator's next call, less the time in which a sub-agent's model or "
        "tool was at work.",
        _overhead,
    ),
    Metric(
        "verbatim_composition_rate",
        "Routing",
        "Answers that quote",
        "share",
        "Composed answers that hold the words of a sub-agent byte for byte. The offline stand-in, which is "
        "no model, quotes.",
        _verbatim,
        "{n}",
        "composition",
    ),
    Metric(
        "compaction_rate",
        "Routing",
        "Conversations summed up",
        "share",
        "Turns in which old turns were summed up.",
        _share_of("compacted", "turns"),
        "{n}",
        "turn",
    ),
    *_latency("routing", "Routing", "deciding whom to ask, and what is carried over"),
    *_latency(
        "first_text", "First text", "to the first text a person could read, a preamble included"
    ),
    *_latency("turn", "Whole turn", "from the message to the end"),
    Metric(
        "sub_agent_invocations",
        "Sub-agents",
        "Asked",
        "count",
        "Invocations, failures and stopped ones included.",
        _agent_times("count"),
    ),
    Metric(
        "sub_agent_seconds_p50",
        "Sub-agents",
        "p50",
        "seconds",
        "Half of the invocations took no longer, from start to end, failures included.",
        _agent_times("p50"),
    ),
    Metric(
        "sub_agent_seconds_p95",
        "Sub-agents",
        "p95",
        "seconds",
        "Of twenty invocations nineteen took no longer.",
        _agent_times("p95"),
    ),
    Metric(
        "sub_agent_seconds_p99",
        "Sub-agents",
        "p99",
        "seconds",
        "Of a hundred invocations ninety-nine took no longer.",
        _agent_times("p99"),
    ),
    Metric(
        "sub_agent_failures_total",
        "Sub-agents",
        "Failed",
        "count",
        "Invocations that ended in a failure; one that was stopped or waits for its user has not failed.",
        _agent_count("failures"),
    ),
    Metric(
        "sub_agent_data_faults_total",
        "Sub-agents",
        "Data faults",
        "count",
        "Data calls that failed while the sub-agent still answered.",
        _agent_count("data_faults"),
    ),
    Metric(
        "sub_agent_status_per_invocation",
        "Sub-agents",
        "Statuses",
        "each",
        "Statuses of the vocabulary for each invocation.",
        _of_agents(_statuses_of_agent),
    ),
    Metric(
        "sub_agent_first_status_seconds_p95",
        "Sub-agents",
        "First status, p95",
        "seconds",
        "From an invocation's start to its first status, the runtime's own word for it included; 2 s is "
        "the target.",
        _of_agents(_first_status),
    ),
    Metric(
        "sub_agent_longest_silence_seconds",
        "Sub-agents",
        "Longest silence",
        "seconds",
        "The longest stretch of any invocation without a status.",
        _of_agents(_longest_silence),
    ),
    Metric(
        "failures_total",
        "Failures",
        "Failures by axis",
        "count",
        "Axis 1: invocations that failed. Axis 2: data that failed. Axis 3: turns in which some of several "
        "failed. What was stopped has not.",
        _failures,
    ),
    Metric(
        "model_faults_total",
        "Failures",
        "Calls nobody could make",
        "count",
        "Calls of tools that do not exist or with arguments nobody can read: told to the model that made "
        "them.",
        _count("model_faults"),
    ),
    Metric(
        "partial_failure_rate",
        "Failures",
        "Partial fan-outs",
        "share",
        "Of turns in which two sub-agents and more worked at once, those in which some of these and not "
        "all failed or lacked their data. One that was stopped is left out.",
        _share_of("fan_outs_partial", "fan_outs"),
        "{n}",
        "fan-out",
    ),
    Metric(
        "fan_out_success_rate",
        "Failures",
        "Answers in fan-outs",
        "share",
        "In those turns, answers among the sub-agents that worked at once and ran to their end: M of N.",
        _share_of("fan_out_whole", "fan_out_calls"),
        "{n}",
        "sub-agent",
    ),
    Metric(
        "timeout_rate",
        "Failures",
        "What took the time of time-outs",
        "share",
        "Of the sub-agents whose time ran out, those that lost it in a slow tool, one slow model call, or "
        "long reasoning.",
        _shares("cause", *get_args(Cause)),
        "{of}, of {n}",
        "time-out",
    ),
    Metric(
        "acknowledgement_rate",
        "Failures",
        "How failures were owned up to",
        "share",
        "Of turns that owed it: composed in the answer's own words, recomposed, appended beneath, rescued "
        "by fixed words, or unsaid.",
        _shares("acknowledged", *get_args(Acknowledgement), "unsaid"),
    ),
    Metric(
        MISMATCH,
        "Whose data",
        "Replies for another principal",
        "count",
        "Replies for another principal, unsigned ones where a key is set, and refusals. None of them "
        "reached a model.",
        _mismatches,
    ),
    Metric(
        "ps6.envelope.version_mismatch_total",
        "Whose data",
        "Replies of another version",
        "count",
        "Replies of a major version that is not understood.",
        _count("version_mismatches"),
    ),
    Metric(
        "envelopes_total",
        "Whose data",
        "Replies checked",
        "count",
        "Replies of the context service, each checked for its principal.",
        _count("envelopes"),
    ),
    Metric(
        "status_unknown_total",
        "Progress",
        "Unknown statuses",
        "count",
        "Statuses outside the vocabulary: kept in the trace, never read by a person.",
        _unknown_statuses,
    ),
    Metric(
        "model_calls_total",
        "Spending",
        "Model calls",
        "count",
        "Calls of a model, by what they were for; of a fork those that it made, not those that it played.",
        spending.by_purpose("model_calls"),
    ),
    Metric(
        "tokens_total",
        "Spending",
        "Tokens",
        "count",
        "Tokens in and out of those calls.",
        spending.by_purpose("input_tokens", "output_tokens"),
    ),
    Metric(
        "cached_tokens_total",
        "Spending",
        "Cached tokens",
        "count",
        "Of the tokens in, those that a provider says it had in its cache; 0 where it says nothing.",
        spending.by_purpose("cached_tokens"),
    ),
    Metric(
        "cost_dollars_total",
        "Spending",
        "Cost",
        "dollars",
        "Of those calls; empty where no price is known.",
        spending.cost_by_purpose,
    ),
    Metric(
        "cost_dollars_per_turn",
        "Spending",
        "Cost a turn",
        "dollars",
        "The same over all turns.",
        spending.a_turn(spending.cost_by_purpose),
    ),
    Metric(
        "spending_not_told_total",
        "Spending",
        "Not told",
        "count",
        "Where a model told no tokens, those above are estimates, as is their cost. They lack what agents did not say.",
        spending.not_told,
    ),
    Metric(
        "extra_cost_dollars_per_turn",
        "Spending",
        "Extra calls, a turn",
        "dollars",
        "Composing, what is carried over, and summaries.",
        spending.a_turn(spending.extra_cost),
    ),
    Metric(
        "routing_accuracy",
        "Judged by labels",
        "Routing accuracy",
        "share",
        "Labelled turns in which a vertical was asked, of those in which it should have been or was.",
        labelled.routing_accuracy,
        "{of} ({n} labelled)",
    ),
    Metric(
        "prior_context_recall",
        "Judged by labels",
        "Carried over",
        "share",
        "Entities a label names that crossed to another sub-agent as prior context.",
        labelled.recall,
        "{n}",
        "name",
    ),
    Metric(
        "reference_resolution_rate",
        "Judged by labels",
        "References understood",
        "share",
        "Labelled references to something of another vertical that were understood.",
        labelled.resolved,
        "{n} labelled",
    ),
    Metric(
        "score",
        "Judged by labels",
        "Scores",
        "each",
        "Mean of a label's scores, for each vertical and quality.",
        labelled.scores,
    ),
)
"""Every metric, in the order in which they are read."""
