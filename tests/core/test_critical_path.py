"""What a turn waited for, and where it went wrong: folds over its spans."""

from kit.core.outcome import Failure
from kit.core.trace import Span, SpanKind, Trace, critical_path, failures, trace_of
from tests.app.logs import mixed


def span(
    name: str,
    parent: str | None,
    started: float,
    ended: float,
    kind: SpanKind = "agent",
    error: str = "",
) -> Span:
    status = "error" if error else "ok"
    return Span(
        id=name,
        parent_id=parent,
        kind=kind,
        name=name,
        agent="",
        started=started,
        ended=ended,
        status=status,
        error=error,
    )


def path(*spans: Span) -> list[str]:
    return [one.id for one in critical_path(Trace(turn_id="t", spans=spans))]


TURN = span("turn", None, 0.0, 4.0, "turn")
DECIDE, COMPOSE = (
    span("decide", "turn", 0.0, 1.0, "model"),
    span("compose", "turn", 3.0, 4.0, "model"),
)


def test_of_what_ran_side_by_side_only_the_last_to_end_was_waited_for():
    quick, slow = span("quick", "turn", 1.0, 2.0), span("slow", "turn", 1.0, 2.5)
    inner, last = span("search", "slow", 1.5, 2.5, "tool"), span("last", "turn", 2.5, 3.0)
    waited_for = ["turn", "decide", "slow", "search", "last", "compose"]
    assert path(TURN, DECIDE, quick, slow, inner, last, COMPOSE) == waited_for


def test_a_real_log_and_an_empty_one_have_a_path():
    names = [one.name for one in critical_path(trace_of(mixed()))]
    assert names == ["turn", "decide · offline", "shop", "search_catalog"]
    assert critical_path(trace_of([])) == ()


def test_the_deepest_failed_span_is_where_it_went_wrong():
    lost = span("shop", "turn", 0, 2, error="data: unavailable")
    call = span("get", "shop", 1, 2, "tool", error="HTTP 503")
    other = span("play", "turn", 0, 3, error="invocation: timeout")
    cut_off = span("work", "play", 0, 2, error="stopped: ")
    trace = Trace(turn_id="t", spans=(TURN, lost, call, other, cut_off))
    assert [one.id for one in failures(trace)] == ["get", "play"], "cut off is no cause"
    late = Failure(call_id="b", agent="shop", axis="invocation", reason="timeout", detail="x")
    assert [one.name for one in failures(trace_of(mixed(late)))] == ["shop"]
    assert failures(trace_of(mixed())) == ()
