"""The waterfall, without a page: what its rows say."""

import re

from kit.core.outcome import Failure
from kit.core.trace import trace_of
from kit.ui.traces.waterfall import waterfall_html
from tests.app.logs import begin, mixed, stamp


def row(html: str, span_id: str) -> str:
    """The row of a span, without its marks but for the bar's."""
    return next(part for part in html.split("<li>") if f'data-pick="{span_id}"' in part)


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", html).split())


def test_a_failed_span_stands_out_and_the_selected_one_is_marked():
    failure = Failure(call_id="b", agent="shop", axis="invocation", reason="timeout")
    html = waterfall_html(trace_of(mixed(failure)), "s3")
    assert words(row(html, "s4")).endswith("0.90 s failed")
    assert "bar agent error" in row(html, "s4")
    assert words(row(html, "s3")).endswith("0.70 s")
    assert [part.count("aria-current") for part in (row(html, "s3"), row(html, "s4"))] == [1, 0]


def test_a_span_that_nobody_closed_says_so_and_a_trace_of_nothing_can_be_drawn():
    cut = [event for event in mixed() if event.kind != "tool_ended"]
    assert words(row(waterfall_html(trace_of(cut), ""), "s5")).endswith("0.60 s not finished")
    assert "0 spans" in waterfall_html(trace_of([]), "")
    assert "0 spans" not in waterfall_html(trace_of(stamp(begin())), "")
