"""The fold from events to what a person sees."""

import itertools
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some
from markdown_it import MarkdownIt

from kit.core.bodies.call import AgentStarted, ToolEnded, ToolStarted
from kit.core.bodies.guard import CallDropped
from kit.core.bodies.speech import StatusLine, Text, TextReplaced
from kit.core.event import Event
from kit.core.outcome import Failure, Reason
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import literal, prose
from tests.app.logs import begin, end, failed, mixed, stamp
from tests.effort import effort
from tests.pages import marks, unescaped

AGENTS = ("rewards", "shop", "offer_details")
TEXTS = some.text("abc $\n", min_size=1, max_size=6)


def _stamped(index: int, made: tuple[str, str, str]) -> tuple[float, str, str | None, object]:
    kind, agent, text = made
    span = f"a-{agent}"
    at = index / 10
    return {
        "lead": (at, "s1", None, Text(channel="lead", text=text)),
        "answer": (at, "s1", None, Text(channel="answer", text=text)),
        "replaced": (at, "s1", None, TextReplaced(from_seq=max(0, index - 2), text=text)),
        "started": (at, span, "s1", AgentStarted(agent=agent, call_id=agent, query=text)),
        "line": (at, f"tool-{index}", span, StatusLine(agent=agent, text=text)),
        "failed": (at, span, "s1", failed(agent, "timeout")),
        "dropped": (at, "s1", None, CallDropped(agent=agent, call_id=agent, reason="over_cap")),
    }[kind]


@some.composite
def logs(draw: some.DrawFn) -> list[Event]:
    kinds = some.sampled_from(
        ("lead", "answer", "replaced", "started", "line", "failed", "dropped")
    )
    made = draw(some.lists(some.tuples(kinds, some.sampled_from(AGENTS), TEXTS), max_size=25))
    bodies = [*begin(), *(_stamped(index, one) for index, one in enumerate(made))]
    return stamp(bodies + (end("done", "rewards") if draw(some.booleans()) else []))  # type: ignore[arg-type]


@given(logs(), some.lists(some.integers(0, 30), max_size=6))
def test_a_log_reduced_in_any_batches_gives_the_same_view(log: list[Event], cuts: list[int]):
    whole = advance(TurnView(), log)
    one_by_one, batched = TurnView(), TurnView()
    for event in log:
        one_by_one = advance(one_by_one, [event])
        assert (
            one_by_one.lead + one_by_one.answer + str(one_by_one.ttft) + str(one_by_one.trace)
        )  # reading must not fix anything
    edges = sorted({0, len(log), *(min(cut, len(log)) for cut in cuts)})
    for start, stop in itertools.pairwise(edges):
        batched = advance(batched, log[start:stop])
    assert one_by_one == whole == batched
    assert (one_by_one.lead, one_by_one.answer, one_by_one.trace) == (
        whole.lead,
        whole.answer,
        whole.trace,
    )


def test_a_step_at_work_says_whether_anything_is_heard_of_it_and_never_what_came_back():
    log = stamp(
        [
            *begin(),
            (1.0, "s2", "s1", AgentStarted(agent="shop", call_id="a", query="q")),
            (
                1.5,
                "s3",
                "s2",
                ToolStarted(agent="shop", tool="find", call_id="c", args={"word": "secret"}),
            ),
            (
                2.0,
                "s2",
                "s1",
                StatusLine(agent="shop", text="Searching"),
            ),  # the runtime may say that for it
            (
                2.5,
                "s3",
                "s2",
                ToolEnded(
                    agent="shop",
                    tool="find",
                    call_id="c",
                    result="raw-detail-42",
                    error="raw-detail-42",
                ),
            ),
        ]
    )
    (step,) = advance(TurnView(), log[:3]).steps
    assert [step.pace(at, 2.0, 6.0) for at in (1.0, 2.9, 3.0, 6.9, 7.0)] == [
        "starting",
        "starting",
        "quiet",
        "quiet",
        "stalled",
    ]
    (step,) = advance(TurnView(), log).steps
    assert [step.pace(at, 2.0, 6.0) for at in (4.4, 4.5)] == ["active", "quiet"]
    assert [entry.text for entry in step.entries] == [
        "calls find(word)",
        "Searching",
        "find() failed",
    ]
    assert step.lines == ("Searching",)


@pytest.mark.parametrize(
    "reason", [reason for reason in get_args(Reason) if reason not in ("cancelled", "paused")]
)
def test_every_failure_is_worded_without_its_raw_reason(reason: Reason):
    view = advance(
        TurnView(),
        mixed(
            Failure(
                call_id="b",
                agent="shop",
                axis="invocation",
                reason=reason,
                detail="HTTP 503 raw-42",
            )
        ),
    )
    step = view.steps[1]
    assert (
        step.state == "failed"
        and step.note
        and not view.parts.is_complete
        and view.headline == "1 of 2 answered"
    )
    shown = " ".join((step.label, step.verdict, view.headline, *view.shortfalls))
    assert "raw-42" not in shown and "_" not in shown and reason not in shown
    assert view.shortfalls == (f"Shop: {step.note}",)


PIECES = (
    "\\",
    "$",
    "![",
    "](",
    "`",
    "<",
    "# ",
    "> ",
    "- ",
    "\n",
    "===",
    "a",
    "http://a.b",
    "www.a.b",
    "a@b.c",
    ":red[",
)


@pytest.mark.req("S-11")
@pytest.mark.req("K-14")
@given(some.lists(some.sampled_from(PIECES), max_size=8).map("".join))
def test_no_text_opens_mathematics_fetches_a_picture_links_or_heads(text: str):
    assert (
        not {"$", "![", "<", "http://", "www."} & set(marks(prose(text)))
        and marks(literal(text)) == []
    )
    assert (
        unescaped(literal(text)).replace("  \n", "\n") == text
        and prose(r"\$5 and \\$6") == r"\$5 and \$6"
    )
    for shown in (prose(text), literal(text)):
        html = MarkdownIt().render(shown)
        assert not re.search(r"<(?:a|img|h\d)\b", html), html


@pytest.mark.parametrize(
    "text",
    ["# a" + " " * 40_000 + "b", "# a" + "#" * 40_000 + "b", "\\" * 40_000, "a\n" + "- " * 20_000],
)
def test_a_long_answer_is_made_ready_in_no_time(text: str):
    assert prose(text) and effort(lambda: prose(text), enough=0.5) < 0.5
