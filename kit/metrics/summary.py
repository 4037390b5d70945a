"""metrics(): every metric of the two sections 10.2 by one call, from the rows of stored turns;
docs/metrics.md explains each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from kit.core.bodies.speech import Acknowledgement
from kit.core.context import OPERATOR
from kit.core.display.turn_parts import ENDING_WORDS, Ending
from kit.core.record import TurnRecord
from kit.core.timeout import Cause
from kit.core.value import Value
from kit.metrics.alert import MISMATCH
from kit.metrics.estimate import Estimate, share
from kit.metrics.latency import Latency, Spread, latencies, spread
from kit.metrics.spending import Spending, spending
from kit.stores.protocol import Store
from kit.stores.tally import Tally

ALL = 1_000_000_000
"""More turns than a store holds."""


class Label(Value):
    """What a person or a judge says about one stored turn; everything but the turn is optional."""

    turn_id: str
    agents: tuple[str, ...] | None = None
    """Whom it should have asked."""
    carried: tuple[str, ...] = ()
    """Entities that prior_context had to carry."""
    resolved: bool | None = None
    """Whether a reference to something of another vertical was understood; None where there was none."""
    scores: dict[str, dict[str, float]] = {}
    """Vertical -> quality (response quality, safety, format ...) -> 0 to 1."""


Pair = tuple[TurnRecord, Label]


class AgentMetrics(Value):
    """One sub-agent over all its invocations; seconds."""

    agent: str
    latency: Spread
    failures: int
    data_faults: int
    statuses_per_invocation: float
    unknown_statuses: int
    first_status: Spread | None
    """None when it never sent a status."""
    longest_silence: float


class Metrics(Value):
    """Counts, rates and percentiles over ended turns; what needs labels is empty without them."""

    turns: int
    endings: dict[Ending, int]
    """How the turns ended, in the kit's own terms -> turns."""
    intents: dict[str, int]
    """Calls emitted in a turn (0, 1, 2, 3+) -> turns."""
    fan_outs: dict[int, int]
    """Sub-agents run in a turn -> turns."""
    cap_exceeded: int
    agents: tuple[AgentMetrics, ...]
    latencies: tuple[Latency, ...]
    """Routing, first text and whole turn, by pattern and path."""
    overhead: Spread | None
    orchestrator: Spread | None
    principal_mismatch_total: int
    version_mismatch_total: int
    envelopes: int
    statuses_per_invocation: float | None
    unknown_statuses: int
    model_faults: int
    """Calls of tools that do not exist or with arguments nobody can read, of orchestrator and sub-agents."""
    partial_failures: Estimate
    """Turns of two and more sub-agents in which some and not all failed, or answered without their data."""
    fan_out_success: Estimate
    """Sub-agents that answered and had their data, of all run in such turns: M of N."""
    axes: dict[str, int]
    """Failures by axis: `invocation` (1), `data` (2), `partial` (3: turns with a partial fan-out)."""
    timeouts: dict[str, Estimate]
    """What took the time (tool, model, reasoning, unknown) -> its share of the invocations whose own time ran out."""
    acknowledgements: dict[str, Estimate]
    """Path -> its share of the turns that owed one; `unsaid` for those that gave none."""
    repeats: Estimate
    """Compositions that hold the words of a sub-agent byte for byte (decisions 33)."""
    compactions: Estimate
    routing_accuracy: dict[str, Estimate]
    """Vertical -> labelled turns in which it was asked exactly when it should have been."""
    prior_context_recall: Estimate
    reference_resolution: Estimate
    scores: dict[str, dict[str, float]]
    """Vertical -> quality -> mean."""
    spending: Spending

    def rows(self) -> list[dict[str, Any]]:
        """Plain rows {metric, of, value}; a metric without a value is there, with None."""
        return [{"metric": metric, "of": of, "value": value} for metric, of, value in _rows(self)]


def metrics(
    store: Store,
    since: float | None = None,
    tenant: str | None = None,
    labels: Iterable[Label] = (),
    tally: Tally | None = None,
) -> Metrics:
    """Metrics over the ended turns of a store, of one tenant or all, begun at `since` (seconds
    since the epoch) or later.

    Only turns that have a label are read one by one, and of those whose label names carried
    entities the events. `tally` is what the store adds up to, where the caller has it.
    """
    labels = list(labels)
    recall = rate(carried for label in labels if label.carried for carried in _recall(store, label))
    return fold(
        tally or store.tally(tenant, since), _labelled(store, since, tenant, labels), recall
    )


def turns_since(
    store: Store, since: float | None = None, tenant: str | None = None
) -> list[TurnRecord]:
    """Turns of a store, of one tenant or all, begun at `since` (seconds since the epoch) or later,
    in the store's order."""
    return [
        turn
        for turn in store.turns(tenant_id=tenant, limit=ALL)
        if turn.started_at >= (since or 0.0)
    ]


def _labelled(
    store: Store, since: float | None, tenant: str | None, labels: Iterable[Label]
) -> list[Pair]:
    pairs = ((store.turn(label.turn_id, OPERATOR), label) for label in labels)
    return [
        (turn, label)
        for turn, label in pairs
        if turn is not None
        and turn.seconds is not None
        and turn.started_at >= (since or 0.0)
        and tenant in (None, turn.tenant_id)
    ]


def fold(tally: Tally, pairs: Sequence[Pair] = (), recall: Estimate | None = None) -> Metrics:
    """The pure part: what turns add up to, and labelled ones, in; metrics out."""
    counts = tally.counts
    ran = tally.of("fan_out")
    calls = sum(int(size) * count for size, count in ran.items())
    partial = share(counts["fan_outs_partial",], counts["fan_outs",])
    axes, late, paths, repeats = (
        tally.of(name) for name in ("axis", "cause", "acknowledged", "repeats")
    )
    endings = tally.of("ending")
    statuses = tally.of("statuses")
    return Metrics(
        turns=counts["turns",],
        endings={ending: endings[ending] for ending in ENDING_WORDS if endings.get(ending)},
        intents={name: counts["intents", name] for name in ("0", "1", "2", "3+")},
        fan_outs=dict(sorted((int(size), count) for size, count in ran.items() if count)),
        cap_exceeded=counts["over_cap",],
        agents=tuple(_agent(tally, key[1]) for key in sorted(tally.samples) if key[0] == "agent"),
        latencies=latencies(tally),
        overhead=spread(tally.samples.get(("overhead",), ())),
        orchestrator=spread(
            value
            for key, values in tally.samples.items()
            if key[0] == "routing"
            for value in values
        ),
        principal_mismatch_total=len(tally.mismatches),
        version_mismatch_total=counts["version_mismatches",],
        envelopes=counts["envelopes",],
        statuses_per_invocation=sum(statuses.values()) / calls if calls else None,
        unknown_statuses=sum(tally.of("unknown_statuses").values()),
        model_faults=counts["model_faults",],
        partial_failures=partial,
        fan_out_success=share(counts["fan_out_whole",], counts["fan_out_calls",]),
        axes={
            "invocation": axes.get("invocation", 0),
            "data": axes.get("data", 0) + sum(tally.of("data_faults").values()),
            "partial": partial.right or 0,
        },
        timeouts={
            cause: share(late.get(cause, 0), sum(late.values())) for cause in get_args(Cause)
        },
        acknowledgements={
            path: share(paths.get(path, 0), sum(paths.values()))
            for path in (*get_args(Acknowledgement), "unsaid")
        },
        repeats=share(repeats.get("True", 0), sum(repeats.values())),
        compactions=share(counts["compacted",], counts["turns",]),
        routing_accuracy=_accuracy(pairs),
        prior_context_recall=recall or share(0, 0),
        reference_resolution=rate(
            label.resolved for _, label in pairs if label.resolved is not None
        ),
        scores=_scores([label for _, label in pairs]),
        spending=spending(tally),
    )


def rate(outcomes: Iterable[bool]) -> Estimate:
    """The share of outcomes that are true."""
    hits = Counter(outcomes)
    return share(hits[True], hits.total())


def _agent(tally: Tally, agent: str) -> AgentMetrics:
    latency = spread(tally.samples["agent", agent])
    counts = tally.counts
    assert latency is not None, "an agent is listed for its calls"
    return AgentMetrics(
        agent=agent,
        latency=latency,
        failures=counts["failures", agent],
        data_faults=counts["data_faults", agent],
        statuses_per_invocation=counts["statuses", agent] / latency.count,
        unknown_statuses=counts["unknown_statuses", agent],
        first_status=spread(tally.samples.get(("first_status", agent), ())),
        longest_silence=tally.silences[agent],
    )


def _accuracy(pairs: Sequence[Pair]) -> dict[str, Estimate]:
    """Over the turns in which a vertical should have been asked, or was."""
    labelled = [
        ({*label.agents}, {*turn.invoked}) for turn, label in pairs if label.agents is not None
    ]
    of = Counter(vertical for right, asked in labelled for vertical in right | asked)
    hits = Counter(vertical for right, asked in labelled for vertical in right & asked)
    return {vertical: share(hits[vertical], count) for vertical, count in sorted(of.items())}


def _recall(store: Store, label: Label) -> list[bool]:
    """Which of the label's entities the prior_context held."""
    contexts = [
        event.body.prior_context or ""
        for event in store.events(label.turn_id, OPERATOR)
        if event.body.kind == "agent_started"
    ]
    text = " ".join(contexts).casefold()
    return [entity.casefold() in text for entity in label.carried]


def _scores(labels: Sequence[Label]) -> dict[str, dict[str, float]]:
    by_vertical: dict[str, dict[str, list[float]]] = {}
    for label in labels:
        for vertical, scores in label.scores.items():
            for quality, score in scores.items():
                by_vertical.setdefault(vertical, {}).setdefault(quality, []).append(score)
    return {
        v: {quality: sum(s) / len(s) for quality, s in scores.items()}
        for v, scores in sorted(by_vertical.items())
    }


Row = tuple[str, str, Any]


def _rows(m: Metrics) -> list[Row]:
    return [
        ("turns", "", m.turns),
        *(("turns_by_ending", ENDING_WORDS[ending], count) for ending, count in m.endings.items()),
        *(("intent_count", name, count) for name, count in m.intents.items()),
        *(("fan_out", str(size), count) for size, count in m.fan_outs.items()),
        ("cap_exceeded_total", "", m.cap_exceeded),
        *(row for latency in m.latencies for row in latency.rows()),
        *(row for agent in m.agents for row in _agent_rows(agent)),
        ("dispatch_overhead_seconds_p95", "", m.overhead and m.overhead.p95),
        ("orchestrator_seconds_p95", "", m.orchestrator and m.orchestrator.p95),
        (MISMATCH, "", m.principal_mismatch_total),
        ("ps6.envelope.version_mismatch_total", "", m.version_mismatch_total),
        ("envelopes_total", "", m.envelopes),
        ("status_per_invocation", "", m.statuses_per_invocation),
        ("status_unknown_total", "", m.unknown_statuses),
        ("model_faults_total", "", m.model_faults),
        _rate_row("partial_failure_rate", "{} fan-outs", m.partial_failures),
        _rate_row("fan_out_success_rate", "{} sub-agents", m.fan_out_success),
        *(
            ("failures_total", f"axis {number}: {axis}", count)
            for number, (axis, count) in enumerate(m.axes.items(), 1)
        ),
        *(
            _rate_row("timeout_rate", f"{cause}, of {{}} time-outs", rate)
            for cause, rate in m.timeouts.items()
        ),
        *(
            _rate_row("acknowledgement_rate", path, rate)
            for path, rate in m.acknowledgements.items()
        ),
        _rate_row("verbatim_composition_rate", "{} compositions", m.repeats),
        _rate_row("compaction_rate", "{} turns", m.compactions),
        *(
            _rate_row("routing_accuracy", f"{v} ({{}} labelled)", rate)
            for v, rate in m.routing_accuracy.items()
        ),
        _rate_row("prior_context_recall", "{} entities", m.prior_context_recall),
        _rate_row("reference_resolution_rate", "{} labelled", m.reference_resolution),
        *(
            ("score", f"{v}: {quality}", score)
            for v, scores in m.scores.items()
            for quality, score in scores.items()
        ),
        *m.spending.rows(),
    ]


def _rate_row(metric: str, of: str, rate: Estimate) -> Row:
    return metric, of.format(rate.n), rate.value if rate.n else None


def _agent_rows(agent: AgentMetrics) -> list[Row]:
    values: Mapping[str, Any] = {
        "sub_agent_invocations": agent.latency.count,
        "sub_agent_seconds_p50": agent.latency.p50,
        "sub_agent_seconds_p95": agent.latency.p95,
        "sub_agent_seconds_p99": agent.latency.p99,
        "sub_agent_failures_total": agent.failures,
        "sub_agent_data_faults_total": agent.data_faults,
        "sub_agent_status_per_invocation": agent.statuses_per_invocation,
        "sub_agent_first_status_seconds_p95": agent.first_status and agent.first_status.p95,
        "sub_agent_longest_silence_seconds": agent.longest_silence,
    }
    return [(metric, agent.agent, value) for metric, value in values.items()]
