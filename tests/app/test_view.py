"""The fold from events to what a person sees."""

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some
from markdown_it import MarkdownIt

from kit.core.bodies.call import AgentStarted, ToolEnded, ToolStarted
from kit.core.bodies.speech import StatusLine
from kit.core.outcome import Failure, Reason
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import literal, prose
from tests.app.logs import begin, mixed, stamp
from tests.effort import effort
from tests.pages import marks, unescaped


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
            # The runtime may say that for it.
            (2.0, "s2", "s1", StatusLine(agent="shop", text="Searching")),
            (2.5, "s3", "s2", ToolEnded(agent="shop", tool="find", call_id="c", error="raw-42")),
        ]
    )
    (step,) = advance(TurnView(), log[:3]).steps
    paces = [step.pace(at, 2.0, 6.0) for at in (2.9, 3.0, 6.9, 7.0)]
    assert paces == ["starting", "quiet", "quiet", "stalled"]
    (step,) = advance(TurnView(), log).steps
    assert [step.pace(at, 2.0, 6.0) for at in (4.4, 4.5)] == ["active", "quiet"]
    entries = [entry.text for entry in step.entries]
    assert entries == ["calls find(word)", "Searching", "find() failed"]
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
    shown = " ".join((step.label, step.verdict, view.headline))
    assert "raw-42" not in shown and "_" not in shown and reason not in shown


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
    ":home:",
    "```",
    "```\n",
    "   ```\n",
    "~~~",
    "    ",
    "\r",
    "| ",
)


def acting(text: str) -> str:
    """What a page reads as text, and neither as code nor as written with a backslash."""
    reader = MarkdownIt().disable("text_join")
    parts = [part for block in reader.parse(text) for part in block.children or ()]
    return "\n".join(part.content for part in parts if part.type == "text")


@pytest.mark.req("S-11")
@pytest.mark.req("K-14")
@given(some.lists(some.sampled_from(PIECES), max_size=8).map("".join))
def test_no_text_opens_mathematics_fetches_a_picture_links_or_heads(text: str):
    shown = acting(prose(text))
    assert not [mark for mark in ("$", "[", "<", "http://", "www.", ":home") if mark in shown]
    assert marks(literal(text)) == []
    assert (
        unescaped(literal(text)).replace("  \n", "\n") == text
        and prose(r"\$5 and \\$6") == r"\$5 and \$6"
    )
    for shown in (prose(text), literal(text)):
        html = MarkdownIt().render(shown)
        assert not re.search(r"<(?:a|img|h\d)\b", html), html


@pytest.mark.parametrize(
    "code",
    [
        '```html\n<div class="x">$5 [1](2)</div>\n# no heading: :red[a]\n```',
        "use `<b>` or `a[0]`",
        "1. so:\n\n   ```\n   http://a.b/c\n\n     [x](d)\n   ```",
        "| a |\n|---|\n| `x<y` |",
    ],
)
def test_code_of_an_answer_is_shown_as_it_was_written(code: str):
    assert prose(code) == code
    beside = f"{code}\n\n[x](http://a.b)"
    assert prose(beside) == f"{code}\n\n\\[x](http\u2060://a.b)"


@pytest.mark.parametrize(
    "text",
    [
        "`a`" * 13_000,
        "```\n" * 10_000,
        "# a" + " " * 40_000 + "b",
        "# a" + "#" * 40_000 + "b",
        "\\" * 40_000,
        "a\n" + "- " * 20_000,
    ],
)
def test_a_long_answer_is_made_ready_in_no_time(text: str):
    assert prose(text) and effort(lambda: prose(text), enough=0.5) < 0.5
