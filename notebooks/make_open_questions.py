"""Writes docs/open_questions.md: `python notebooks/make_open_questions.py [FILE]`."""

import asyncio
import sys
from pathlib import Path

from kit.home import HOME
from kit.runtime.clock import run_virtual
from studies.open_questions import carried, progress, tables, timeouts, without_calls

_TEXT = """# Open questions

Four questions are left open by the design of sub-agent execution. Each has a measurement here, as far as that goes without a
paid model; what it cannot show stands beneath it. Written by `python notebooks/make_open_questions.py`; a test holds it to that.

## When is prior_context written: on every switch, or when the model thinks it helps?

Ten dialogues of five hops, each to another sub-agent; a fact of the first turn is in view when it stands in what the sub-agent's
model was shown. The helper is the offline stand-in, which lists the last names.

{}

Written on every switch, it carries what nothing else does, for a few tokens. Whether a model that decides for itself writes it
when it is needed cannot be measured without that model; `prior_context_recall` of labelled turns would say it.

## How long may a sub-agent take?

Three sub-agents that work for 0.5, 1 and 6 seconds, exact on a virtual clock.

{}

One time-out for all either loses the slow one or waits for the one that hangs; a time-out on each card does neither. A
time-out that statuses extend cannot be measured here: nothing extends a deadline once it is set. [patterns.md](patterns.md)
says what helps where time runs out.

## How is the progress of agents told that report at different rates?

One turn of three sub-agents, one of which says nothing for three seconds, played under each policy.

{}

Silence is the longest that any one of them was not heard of. A window gathers lines and says the first of them later. What people
like better cannot be measured without people.

## May the orchestrator make no call at all?

The offline stand-in on the consumer deck.

{}

A turn without a call costs one model call, and answers nothing but small talk: off the allow-list the default sub-agent is asked
(decisions 5). What a paid model would answer by itself, and how often wrongly, cannot be measured without it.
"""


def text() -> str:
    """Returns the document."""
    waits, tellings = run_virtual(timeouts()), run_virtual(progress())
    return _TEXT.format(
        *tables(asyncio.run(carried()), waits, tellings, asyncio.run(without_calls()))
    )


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HOME / "docs" / "open_questions.md"
    path.write_text(text(), encoding="utf-8", newline="\n")
