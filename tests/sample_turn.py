"""One turn with everything in it that a store or a sink must carry: an answer, a failure, a broken
model, an open call."""

from kit.core.bodies.call import (
    AgentEnded,
    AgentStarted,
    CallFailure,
    ModelEnded,
    ModelStarted,
    RequestMessage,
    ToolEnded,
    ToolStarted,
)
from kit.core.bodies.speech import Component, Text
from kit.core.bodies.turn import Completed, Routing, TurnStarted
from kit.core.context import Principal
from kit.core.event import Body, Event
from kit.core.outcome import (
    Answer,
    Failure,
    LeftOut,
    MessagePart,
    RoutedOutcome,
    RoutingDecision,
    Usage,
)
from kit.core.record import Message, TurnRecord
from kit.stores.turn_store import TurnStore

ANN = Principal(tenant_id="acme", user_id="ann")
DECISION = RoutingDecision(
    pattern="mediated",
    invoked=("shop", "play"),
    intent_count=2,
    reported_intents=3,
    left_out=LeftOut(count=1, parts=("and a word nobody heard",)),
    parts=(
        MessagePart(text="which beans", asked=("shop",)),
        MessagePart(text="and a word nobody heard", owed=True),
    ),
    cap=4,
    cap_behavior="within",
    outcomes=(
        RoutedOutcome(agent="shop", call_id="c1", result="success"),
        RoutedOutcome(agent="play", call_id="c2", result="failure", reason="timeout"),
    ),
    rounds=1,
)


def a_turn(
    turn_id: str = "t1", session_id: str = "s1", user: str = "ann", at: float = 1.0
) -> TurnRecord:
    return TurnRecord(
        id=turn_id,
        session_id=session_id,
        tenant_id="acme",
        user_id=user,
        message="hi",
        pattern="mediated",
        started_at=at,
    )


def some_events(turn_id: str = "t1") -> list[Event]:
    """One answer, one failure, one component, one model that broke, one call still open."""
    used = Usage(input_tokens=7, output_tokens=3, model_calls=1, cost=0.5)
    lost = Failure(
        call_id="c2", agent="play", axis="invocation", reason="timeout", detail="12 s", usage=used
    )
    steps: list[tuple[str, str | None, Body]] = [
        (
            "root",
            None,
            TurnStarted(
                message="hi", session_id="s1", principal=ANN, pattern="mediated", started_at=1.0
            ),
        ),
        (
            "m1",
            "root",
            ModelStarted(
                agent="orchestrator",
                model="offline",
                purpose="decide",
                input=(RequestMessage(role="user", text="hi"),),
            ),
        ),
        (
            "m1",
            "root",
            ModelEnded(
                agent="orchestrator", model="offline", text="Let me see.", usage=used, ttft=0.25
            ),
        ),
        ("a1", "root", AgentStarted(agent="shop", call_id="c1", query="beans")),
        ("a2", "root", AgentStarted(agent="play", call_id="c2", query="games")),
        ("k1", "a1", ToolStarted(agent="shop", tool="find", call_id="x1", args={"q": "beans"})),
        ("k1", "a1", ToolEnded(agent="shop", tool="find", call_id="x1", result="3 found")),
        (
            "a1",
            "root",
            Component(agent="shop", type="offer", payload={"sku": "B1", "note": "täglich \x00 ✓"}),
        ),
        (
            "a1",
            "root",
            AgentEnded(
                agent="shop", outcome=Answer(call_id="c1", agent="shop", text="Three.", usage=used)
            ),
        ),
        ("a2", "root", AgentEnded(agent="play", outcome=lost)),
        ("m2", "root", ModelStarted(agent="orchestrator", model="offline", purpose="compose")),
        (
            "m2",
            "root",
            ModelEnded(
                agent="orchestrator",
                model="offline",
                error="503",
                failure=CallFailure(kind="exception", text="503"),
                usage=used,
            ),
        ),
        ("k2", "root", ToolStarted(agent="orchestrator", tool="slow", call_id="x2")),
        ("root", None, Text(channel="answer", text="Three beans.")),
        ("root", None, Routing(decision=DECISION)),
        ("root", None, Completed(status="ok", text="Three beans.")),
    ]
    return [
        Event(seq=n, at=n / 8, turn_id=turn_id, span_id=span, parent_span_id=parent, body=body)
        for n, (span, parent, body) in enumerate(steps)
    ]


def finish(store: TurnStore, turn: TurnRecord, events: list[Event] | None = None) -> TurnRecord:
    ended = turn.model_copy(
        update={
            "status": "ok",
            "text": "yo",
            "seconds": 0.5,
            "invoked": ("shop", "play"),
            "failed": ("play",),
        }
    )
    said = [
        Message(turn_id=turn.id, role="user", text="hi"),
        Message(turn_id=turn.id, role="assistant", text="yo"),
    ]
    store.begin_turn(turn)
    store.end_turn(ended, some_events(turn.id) if events is None else events, said)
    return ended
