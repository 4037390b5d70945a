"""The waterfall, without a page: what its rows say."""

import re

import pytest

from kit.core.outcome import Failure
from kit.core.trace import trace_of
from kit.ui.traces.waterfall import waterfall_html
from tests.app.logs import begin, end, mixed, stamp


def row(html: str, span_id: str) -> str:
    """The row of a span, without its marks but for the bar's."""
    return next(part for part in html.split("<li>") if f'data-pick="{span_id}"' in part)


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", html).split())


def test_a_failed_span_stands_out_with_its_reason_and_the_selected_one_is_marked():
    failure = Failure(
        call_id="b",
        agent="shop",
        axis="invocation",
        reason="timeout",
        detail="no answer within 2 s" + ", which is long" * 20,
    )
    html = waterfall_html(trace_of(mixed(failure)), "s3")
    assert "bar agent error" in row(html, "s4")
    assert "0.90 s failed timeout: no answer within 2 s" in words(row(html, "s4"))
    assert len(words(row(html, "s4"))) < 150, "the span in full has all of it"
    assert words(row(html, "s3")).endswith("0.70 s")
    assert [part.count("aria-current") for part in (row(html, "s3"), row(html, "s4"))] == [1, 0]


def test_a_row_says_of_which_agent_its_call_is():
    html = waterfall_html(trace_of(mixed()), "")
    assert words(row(html, "s5")).endswith("get_points (rewards) 0.20 s")
    assert words(row(html, "s6")).endswith("search_catalog (shop) 0.30 s")
    assert words(row(html, "s3").partition(">")[2]).startswith("rewards 0.70 s"), "named once"


@pytest.mark.parametrize(
    ("ended", "ticks"),
    [
        (2.0, ["0", "0.5", "1", "1.5", "2"]),
        (7.5, ["0", "2", "4", "6", "8"]),
        (130.0, ["0", "50", "100", "150", "200"]),
    ],
)
def test_the_bars_stand_under_a_few_round_seconds(ended: float, ticks: list[str]):
    html = waterfall_html(trace_of(stamp([*begin(), *end("Done.", at=ended)])), "")
    axis = html.partition('<p class="row axis"')[2].partition("</p>")[0]
    assert re.findall(r"<i [^>]+>([^<]+)</i>", axis) == ticks
    share = round(100 * ended / float(ticks[-1]), 2)
    assert f"left: 0.0%; width: {share}%" in row(html, "s1"), "on the same axis"


def test_a_span_that_nobody_closed_says_so_and_a_trace_of_nothing_can_be_drawn():
    cut = [event for event in mixed() if event.kind != "tool_ended"]
    assert words(row(waterfall_html(trace_of(cut), ""), "s5")).endswith("0.60 s not finished")
    assert "0 spans" in waterfall_html(trace_of([]), "")
    assert "0 spans" not in waterfall_html(trace_of(stamp(begin())), "")
