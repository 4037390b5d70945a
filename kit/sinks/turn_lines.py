"""A line of JSON on standard output for each turn that ended, for whoever collects the logs of a process."""

import datetime
import sys
from collections.abc import Sequence

import orjson

from kit.core.event import Event
from kit.core.record import TurnRecord
from kit.core.trace import Trace


class TurnLines:
    """Says who asked when, what answered, how it ended and what it cost: no word of a user, a model or a tool."""

    name = "turn lines"

    def turn_ended(self, turn: TurnRecord, trace: Trace, events: Sequence[Event]) -> None:
        """Writes the line of a turn."""
        began = datetime.datetime.fromtimestamp(turn.started_at, datetime.UTC)
        line = {
            "time": began.isoformat(timespec="milliseconds"),
            "turn": turn.id,
            "tenant": turn.tenant_id,
            "user": turn.user_id,
            "session": turn.session_id,
            "pattern": turn.pattern,
            "model": turn.model,
            "status": turn.status,
            "seconds": turn.seconds,
            "input_tokens": turn.input_tokens,
            "output_tokens": turn.output_tokens,
            "cost": turn.cost,
            "failed": turn.failed,
        }
        # One write: lines of turns that end at the same time do not run into each other.
        sys.stdout.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE).decode())
        sys.stdout.flush()

    def close(self) -> None:
        """Does nothing: every line has been written."""
