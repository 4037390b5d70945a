"""The waterfall, without a page: what its data and its specification say."""

import subprocess
import sys

import altair

from kit.core.outcome import Failure
from kit.core.trace import trace_of
from kit.ui.shared.waterfall import COLOURS, rows, waterfall_spec
from tests.app.logs import begin, mixed, stamp


def test_every_span_has_one_bar_in_tree_order() -> None:
    trace = trace_of(mixed())
    made = rows(trace)
    assert [row["id"] for row in made] == ["s1", "s2", "s3", "s5", "s4", "s6"]
    assert {row["kind"] for row in made} == {"turn", "model", "agent", "tool"} == set(COLOURS)
    assert waterfall_spec(trace)["layer"][0]["data"]["values"] == made


def test_a_failed_span_is_named_with_its_raw_reason() -> None:
    failure = Failure(
        call_id="b",
        agent="shop",
        axis="invocation",
        reason="timeout",
        detail="no answer within 2 s",
    )
    by_id = {row["id"]: row for row in rows(trace_of(mixed(failure)))}
    assert by_id["s4"]["status"] == "error"
    assert by_id["s4"]["beside"] == "0.90 s · timeout: no answer within 2 s"
    assert by_id["s3"]["beside"] == "0.70 s"


def test_a_span_cut_off_with_its_parent_ends_with_it() -> None:
    cut = [event for event in mixed() if event.kind != "tool_ended"]
    by_id = {row["id"]: row for row in rows(trace_of(cut))}
    assert by_id["s5"]["ended"] == by_id["s3"]["ended"] == 0.9
    assert by_id["s5"]["beside"] == "0.60 s · not finished"


def test_labels_are_never_dropped_and_keep_their_depth() -> None:
    spec = waterfall_spec(trace_of(mixed()))
    assert spec["layer"][0]["encoding"]["y"]["axis"]["labelOverlap"] is False
    assert spec["height"] >= 20 * len(spec["layer"][0]["data"]["values"])
    names = [row["name"] for row in spec["layer"][0]["data"]["values"]]
    assert names[0] == "turn" and names[2] == "rewards" and names[3] == "└ get_points"


def test_the_stand_in_model_is_not_shown_by_its_key() -> None:
    assert [row["name"] for row in rows(trace_of(mixed())) if row["kind"] == "model"] == ["decide"]


def test_a_running_or_empty_trace_can_be_drawn() -> None:
    assert waterfall_spec(trace_of([]))["layer"][0]["data"]["values"] == []
    running = rows(trace_of(mixed()[:10]))
    assert {row["status"] for row in running} == {"running", "ok"}
    assert all(row["ended"] >= row["started"] for row in running)
    assert rows(trace_of(stamp(begin())))[0]["ended"] == 0.0


def test_a_notebook_gets_it_as_a_chart_that_altair_accepts() -> None:
    chart = altair.LayerChart.from_dict({**waterfall_spec(trace_of(mixed())), "width": 500})
    assert chart.to_dict()["width"] == 500


def test_it_loads_neither_streamlit_nor_altair() -> None:
    code = (
        "import sys, kit.ui.shared.waterfall, kit.ui.shared.turn_fold; print({'streamlit', "
        "'altair'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
