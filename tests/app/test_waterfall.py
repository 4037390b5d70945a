"""The waterfall, without a page: what its data and its specification say."""

import subprocess
import sys

from kit.core.outcome import Failure
from kit.core.trace import trace_of
from kit.ui.waterfall import COLOURS, rows, waterfall
from tests.app.logs import begin, mixed, stamp


def test_every_span_has_one_bar_in_tree_order() -> None:
    trace = trace_of(mixed())
    made = rows(trace)
    assert [row["id"] for row in made] == ["s1", "s2", "s3", "s5", "s4", "s6"]
    assert {row["kind"] for row in made} == {"turn", "model", "agent", "tool"} == set(COLOURS)
    assert waterfall(trace).to_dict()["data"]["values"] == made


def test_a_failed_span_is_named_with_its_raw_reason() -> None:
    failure = Failure(call_id="b", agent="shop", axis="invocation", reason="timeout", detail="no answer within 2 s")
    by_id = {row["id"]: row for row in rows(trace_of(mixed(failure)))}
    assert by_id["s4"]["status"] == "error"
    assert by_id["s4"]["beside"] == "0.90 s · timeout: no answer within 2 s"
    assert by_id["s3"]["beside"] == "0.70 s"


def test_labels_are_never_dropped_and_keep_their_depth() -> None:
    spec = waterfall(trace_of(mixed())).to_dict()
    axis = spec["layer"][0]["encoding"]["y"]["axis"]
    assert axis["labelOverlap"] is False
    names = [row["name"] for row in spec["data"]["values"]]
    assert names[0] == "turn" and names[2] == "rewards" and names[3].endswith("get_points") and names[3] != "get_points"


def test_the_stand_in_model_is_not_shown_by_its_key() -> None:
    assert [row["name"] for row in rows(trace_of(mixed())) if row["kind"] == "model"] == ["decide"]


def test_a_running_or_empty_trace_can_be_drawn() -> None:
    assert waterfall(trace_of([])).to_dict()["data"]["values"] == []
    running = rows(trace_of(mixed()[:10]))
    assert {row["status"] for row in running} == {"running", "ok"}
    assert all(row["ended"] >= row["started"] for row in running)
    assert rows(trace_of(stamp(begin())))[0]["ended"] == 0.0


def test_notebooks_get_it_without_streamlit() -> None:
    code = "import sys, kit.ui.waterfall, kit.ui.view; print('streamlit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
