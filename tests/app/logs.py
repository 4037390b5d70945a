"""Logs of turns, made by hand: bodies are stamped as a turn's own log would stamp them."""

from collections.abc import Sequence

from kit.core.bodies.call import (
    AgentEnded,
    AgentStarted,
    ModelEnded,
    ModelStarted,
    ToolEnded,
    ToolStarted,
)
from kit.core.bodies.speech import StatusLine, Text
from kit.core.bodies.turn import Completed, Routing, Thinking, TurnStarted, TurnUsage
from kit.core.context import Principal
from kit.core.event import Body, Event
from kit.core.outcome import (
    Answer,
    CapBehavior,
    Failure,
    Outcome,
    Reason,
    RoutedOutcome,
    RoutingDecision,
    Usage,
)

Stamped = tuple[float, str, str | None, Body]
WHO = Principal(tenant_id="acme", user_id="u-001")


def stamp(bodies: Sequence[Stamped], turn_id: str = "t1") -> list[Event]:
    """Events from (at, span, parent span, body). A routing event without outcomes gets those of the
    agents that ended before it, as a turn's own has."""
    events: list[Event] = []
    for seq, (at, span, parent, body) in enumerate(bodies):
        if isinstance(body, Routing) and not body.decision.outcomes:
            ended = [event.body for event in events if isinstance(event.body, AgentEnded)]
            outcomes = tuple(routed(one.outcome) for one in ended)
            body = Routing(decision=body.decision.replace(outcomes=outcomes))
        events.append(
            Event(seq=seq, at=at, turn_id=turn_id, span_id=span, parent_span_id=parent, body=body)
        )
    return events


def routed(outcome: Outcome) -> RoutedOutcome:
    """The line that a routing decision has for an outcome."""
    result = "success"
    reason = None
    if isinstance(outcome, Failure):
        result = "data_error" if outcome.axis == "data" else "failure"
        reason = outcome.reason
    elif outcome.is_partial:
        result = "partial"
    return RoutedOutcome(agent=outcome.agent, call_id=outcome.call_id, result=result, reason=reason)


def begin(message: str = "points and shoes?") -> list[Stamped]:
    started = TurnStarted(
        message=message, session_id="s", principal=WHO, pattern="mediated", started_at=1000.0, cap=4
    )
    return [(0.0, "s1", None, Thinking()), (0.0, "s1", None, started)]


def answered(
    agent: str, text: str = "Here.", *, faults: tuple[str, ...] = (), caveat: str | None = None
) -> AgentEnded:
    return AgentEnded(
        agent=agent,
        outcome=Answer(call_id=agent, agent=agent, text=text, data_faults=faults, caveat=caveat),
    )


def failed(agent: str, reason: Reason, detail: str = "raw-detail-42") -> AgentEnded:
    axis = "data" if reason in ("unavailable", "principal_mismatch") else "invocation"
    return AgentEnded(
        agent=agent,
        outcome=Failure(call_id=agent, agent=agent, axis=axis, reason=reason, detail=detail),
    )


def decision(
    *agents: str, cap: int = 4, behavior: CapBehavior = "within", dropped: tuple[str, ...] = ()
) -> Routing:
    count = len(agents) + len(dropped)
    return Routing(
        decision=RoutingDecision(
            pattern="mediated",
            invoked=agents,
            intent_count=count,
            reported_intents=count,
            cap=cap,
            cap_behavior=behavior,
            dropped=dropped,
        )
    )


def end(
    text: str, *agents: str, usage: Usage | None = None, status: str = "ok", at: float = 2.0
) -> list[Stamped]:
    spent = usage or Usage(input_tokens=1200, output_tokens=80, model_calls=4)
    done = Completed(status=status, text=text)  # type: ignore[arg-type]
    return [
        (at, "s1", None, decision(*agents)),
        (at, "s1", None, TurnUsage(usage=spent)),
        (at, "s1", None, done),
    ]


def mixed(outcome: Outcome | None = None) -> list[Event]:
    """Two sub-agents at once, lines interleaved; `shop` ends as told."""
    shop = AgentEnded(agent="shop", outcome=outcome) if outcome else answered("shop")
    return stamp(
        [
            *begin(),
            (
                0.0,
                "s2",
                "s1",
                ModelStarted(agent="orchestrator", model="offline", purpose="decide"),
            ),
            (0.1, "s1", None, Text(channel="lead", text="Let me look at both.")),
            (
                0.1,
                "s2",
                "s1",
                ModelEnded(
                    agent="orchestrator",
                    model="offline",
                    usage=Usage(input_tokens=9, model_calls=1),
                ),
            ),
            (0.2, "s3", "s1", AgentStarted(agent="rewards", call_id="a", query="points")),
            (0.2, "s4", "s1", AgentStarted(agent="shop", call_id="b", query="shoes")),
            (0.3, "s5", "s3", ToolStarted(agent="rewards", tool="get_points", call_id="x")),
            (0.3, "s5", "s3", StatusLine(agent="rewards", text="Checking your points")),
            (0.4, "s6", "s4", ToolStarted(agent="shop", tool="search_catalog", call_id="y")),
            (0.4, "s6", "s4", StatusLine(agent="shop", text="Searching the catalogue")),
            (
                0.5,
                "s5",
                "s3",
                ToolEnded(agent="rewards", tool="get_points", call_id="x", result="120"),
            ),
            (0.6, "s3", "s1", StatusLine(agent="rewards", text="Adding it up")),
            (
                0.7,
                "s6",
                "s4",
                ToolEnded(agent="shop", tool="search_catalog", call_id="y", result="[]"),
            ),
            (0.9, "s3", "s1", answered("rewards")),
            (1.1, "s4", "s1", shop),
            (1.2, "s1", None, Text(channel="answer", text="You have ")),
            (1.3, "s1", None, Text(channel="answer", text="120 points.")),
            *end("You have 120 points.", "rewards", "shop"),
        ]
    )
