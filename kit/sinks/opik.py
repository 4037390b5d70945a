"""Copies finished turns to Opik through its own SDK, which sends from threads of its own; imported
only when configured."""

import base64
import hashlib
import logging
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from kit.core.event import Event
from kit.core.extra import require
from kit.core.record import TurnRecord
from kit.core.trace import Span, SpanKind, Trace

if TYPE_CHECKING:
    from opik import Opik
    from opik.types import ErrorInfoDict

log = logging.getLogger("kit.opik")

_TYPES: dict[SpanKind, Literal["general", "llm", "tool"]] = {
    "turn": "general",
    "agent": "general",
    "model": "llm",
    "tool": "tool",
}


CLOUD = "https://www.comet.com/opik/api/"
PATIENCE = 1.0
"""Seconds a server has to say that it is there."""
AGAIN = 60.0
"""Seconds for which one that said nothing is not asked again."""
_silent: dict[str, float] = {}
"""Server -> when it last did not answer. A process says so once for each."""


def trace_url(turn_id: str, started_at: float, url: str | None = None) -> str:
    """Where a turn's trace is read on the server whose REST root is `url`, the cloud's when None:
    it sends on to its page."""
    root = url or CLOUD
    path = quote(base64.b64encode(root.encode()).decode(), safe="=")
    return f"{root.rstrip('/')}/v1/session/redirect/projects/?trace_id={uuid7(started_at, turn_id)}&path={path}"


def project_url(
    url: str | None = None, workspace: str | None = None, project: str = "subagent-kit"
) -> str:
    """The page of a project on the server whose REST root is `url`, the cloud's when None."""
    page = (url or CLOUD).rstrip("/").removesuffix("/api")
    return f"{page}/{quote(workspace or 'default')}/redirect/projects?name={quote(project)}"


def answers(url: str | None = None) -> bool:
    """Whether the server whose REST root is `url`, the cloud's when None, is there. One that is not
    costs 1 s, once a minute."""
    root = (url or CLOUD).rstrip("/")
    if time.monotonic() - _silent.get(root, -AGAIN) < AGAIN:
        return False
    is_known = root in _silent
    if _ping(root):
        return True
    if not is_known:
        log.warning(
            "Opik at %s does not answer: nothing is sent there, the store has every turn", root
        )
    return False


def _ping(root: str) -> bool:
    import httpx

    try:
        if httpx.get(f"{root}/is-alive/ping", timeout=PATIENCE).is_success:
            return True
    except httpx.HTTPError:
        pass
    _silent[root] = time.monotonic()
    return False


def open_opik(
    url: str | None = None,
    api_key: str | None = None,
    workspace: str | None = None,
    project: str = "subagent-kit",
) -> "OpikSink | None":
    """A sink to the Opik server at `url` (its REST root, ending in /api); without a url, to the
    cloud of `api_key`.

    None, and one warning in a process, where no server answers: see `answers`. Else the first call
    imports the SDK, which takes seconds. Raises SettingsError where the SDK is not installed.
    """
    require("opik", "opik")
    if not answers(url):
        return None
    # The SDK reads its switches from the environment while it is imported, and by default reports to its makers,
    # talks on stderr and waits for a dead server without end. What the user set stays.
    os.environ.setdefault("OPIK_SENTRY_ENABLE", "false")
    os.environ.setdefault("OPIK_ANALYTICS_ENABLE", "false")
    os.environ.setdefault("OPIK_DEFAULT_FLUSH_TIMEOUT", "2")
    os.environ.setdefault("OPIK_CONSOLE_LOGGING_LEVEL", "ERROR")
    from opik import Opik

    return OpikSink(Opik(project_name=project, workspace=workspace, host=url, api_key=api_key))


@dataclass
class OpikSink:
    """One Opik trace a turn, in the thread of its session; a span for every agent, model call and tool call."""

    client: "Opik"
    name: str = "opik"
    turns: int = field(default=0, init=False)
    """Turns handed to the SDK."""

    def turn_ended(self, turn: TurnRecord, trace: Trace, events: Sequence[Event]) -> None:
        """Queues the trace and its spans and returns; the SDK sends them."""
        self.send(turn, trace)

    def send(self, turn: TurnRecord, trace: Trace, tags: Sequence[str] = ()) -> str:
        """The same with tags of the caller's; returns the trace's id. Ids come from the turn, so a
        repeat overwrites."""
        trace_id = uuid7(trace.started_at, turn.id)
        root = trace.spans[0] if trace.spans else None
        error = None
        if root is not None and root.status == "error":
            error = _error(turn.status, root.error or turn.status)
        ids: dict[str, str] = {}
        for span in trace.spans:
            ids[span.id] = uuid7(trace.started_at + span.started, f"{turn.id}/{span.id}")
        self.client.trace(
            id=trace_id,
            name=f"turn · {turn.pattern}",
            start_time=_moment(trace.started_at),
            end_time=_moment(trace.started_at + (turn.seconds or 0.0)),
            input={"message": turn.message},
            output={"text": turn.text},
            metadata=_about(turn, trace),
            tags=[turn.pattern, turn.status, *tags],
            thread_id=str(turn.session_key),
            error_info=error,
        )
        for span in trace.spans[1:]:
            parent = None
            # In Opik the turn itself is the trace: what stands right below it has no parent.
            if root is not None and span.parent_id != root.id:
                parent = ids.get(span.parent_id or "")
            self._send(span, trace, trace_id, ids[span.id], parent)
        self.turns += 1
        return trace_id

    def _send(
        self, span: Span, trace: Trace, trace_id: str, span_id: str, parent: str | None
    ) -> None:
        # An agent's usage is the sum of its model calls: sent once, on the calls, so that Opik's totals hold.
        tokens = None
        cost = None
        model = None
        if span.kind == "model":
            usage = span.usage
            tokens = {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.input_tokens + usage.output_tokens,
            }
            cost = usage.cost
            model = span.attributes.get("model")
        error = None
        if span.status == "error":
            error = _error(span.kind, span.error or "")
        self.client.span(
            trace_id=trace_id,
            id=span_id,
            parent_span_id=parent,
            name=span.name,
            type=_TYPES[span.kind],
            start_time=_moment(trace.started_at + span.started),
            end_time=_moment(trace.started_at + span.ended),
            input={"text": span.input},
            output={"text": span.output},
            metadata={**span.attributes, "agent": span.agent, "status": span.status},
            usage=tokens,
            total_cost=cost,
            model=model,
            error_info=error,
        )

    def close(self) -> None:
        """Sends what is queued, 2 s at most; a server that does not answer costs 1 s and one warning."""
        url = self.client.config.url_override.rstrip("/")
        if self.turns and not _ping(url):
            self.client.end(flush=False)
            log.warning(
                "Opik at %s went silent: up to %d turns are missing there; the store has them all",
                url,
                self.turns,
            )
            return
        result = self.client.end(timeout=2)
        if result is not None and not result.success:
            reasons = ", ".join(sorted({failure.reason.value for failure in result.failures}))
            log.warning(
                "Opik at %s did not take everything of %d turns (%s); the store has them all",
                url,
                self.turns,
                reasons or "not sent in time",
            )


def _about(turn: TurnRecord, trace: Trace) -> dict[str, Any]:
    root: dict[str, Any] = {}
    if trace.spans:
        root = dict(trace.spans[0].attributes)
    routing = None
    if trace.routing:
        routing = trace.routing.model_dump(mode="json")
    return {
        **root,
        "turn_id": turn.id,
        "status": turn.status,
        "ttft": turn.ttft,
        "routing": routing,
    }


def _error(kind: str, message: str) -> "ErrorInfoDict":
    return {"exception_type": kind, "message": message, "traceback": ""}


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def uuid7(seconds: float, seed: str) -> str:
    """The only kind of id Opik takes: the time in front, then 74 bits, here of the seed instead of chance."""
    # Bits of RFC 9562: 48 of milliseconds, the version 7, 12 and 62 of the digest around the variant 10.
    digest = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=10).digest())
    value = (
        int(seconds * 1000) << 80
        | 0x7 << 76
        | (digest >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | digest & (1 << 62) - 1
    )
    return str(uuid.UUID(int=value))
