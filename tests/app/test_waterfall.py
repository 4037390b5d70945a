"""The waterfall, without a page: what its data and its chart say."""

import subprocess
import sys
from typing import Any

from kit.core.outcome import Failure
from kit.core.trace import Trace, trace_of
from kit.ui.traces.waterfall import COLOURS, waterfall_chart, waterfall_rows
from tests.app.logs import begin, mixed, stamp


def chart_of(trace: Trace) -> dict[str, Any]:
    return dict(waterfall_chart(trace).to_dict())


def test_every_span_has_one_bar_in_tree_order():
    trace = trace_of(mixed())
    made = waterfall_rows(trace)
    assert [row["id"] for row in made] == ["s1", "s2", "s3", "s5", "s4", "s6"]
    assert {row["kind"] for row in made} == {"turn", "model", "agent", "tool"} == set(COLOURS)
    assert chart_of(trace)["datasets"][chart_of(trace)["layer"][1]["data"]["name"]] == made


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


def test_a_folded_turn_needs_no_page():
    code = "import sys, kit.ui.shared.turn_fold; print({'streamlit', 'altair'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
