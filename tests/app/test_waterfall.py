"""The waterfall, without a page: what its data and its chart say."""

from typing import Any

from kit.core.outcome import Failure
from kit.core.trace import Trace, trace_of
from kit.ui.traces.waterfall import waterfall_chart, waterfall_rows
from tests.app.logs import begin, mixed, stamp


def chart_of(trace: Trace) -> dict[str, Any]:
    return dict(waterfall_chart(trace).to_dict())


def test_a_failed_span_is_named_with_its_raw_reason():
    failure = Failure(
        call_id="b",
        agent="shop",
        axis="invocation",
        reason="timeout",
        detail="no answer within 2 s",
    )
    by_id = {row["id"]: row for row in waterfall_rows(trace_of(mixed(failure)))}
    assert by_id["s4"]["status"] == "error"
    assert by_id["s4"]["beside"] == "0.90 s · timeout: no answer within 2 s"
    assert by_id["s3"]["beside"] == "0.70 s"


def test_a_span_cut_off_with_its_parent_ends_with_it():
    cut = [event for event in mixed() if event.kind != "tool_ended"]
    by_id = {row["id"]: row for row in waterfall_rows(trace_of(cut))}
    assert by_id["s5"]["ended"] == by_id["s3"]["ended"] == 0.9
    assert by_id["s5"]["beside"] == "0.60 s · not finished"


def test_a_running_or_empty_trace_can_be_drawn():
    assert waterfall_rows(trace_of([])) == [] and chart_of(trace_of([]))["layer"]
    running = waterfall_rows(trace_of(mixed()[:10]))
    assert {row["status"] for row in running} == {"running", "ok"}
    assert all(row["ended"] >= row["started"] for row in running)
    assert waterfall_rows(trace_of(stamp(begin())))[0]["ended"] == 0.0
