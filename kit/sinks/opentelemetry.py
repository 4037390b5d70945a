"""Copies finished turns to OpenTelemetry: the same spans, with the same times, under the GenAI conventions."""

import atexit
import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from kit.core.bodies.turn import Routing
from kit.core.errors import SettingsError
from kit.core.event import Event
from kit.core.extra import require
from kit.core.record import TurnRecord
from kit.core.trace import Span, Trace
from kit.sinks.alert_counter import AlertCounter

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Event as SpanEvent
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = logging.getLogger("kit.otel")

Attributes = dict[str, str | int | float | bool | Sequence[str]]


class OtelSink:
    """One OpenTelemetry trace a turn; its trace id is the turn's id where that is a UUID.

    Give an `exporter`, or the `endpoint` of an OTLP/HTTP collector (`/v1/traces` is added to a bare
    host). A batch thread sends. At most `limit` spans wait; a turn that would pass it is left out
    whole and counted. Messages, arguments and answers travel only with `content=True`: a collector
    is often shared. A reply for another principal is counted at `endpoint` when it comes in
    (`/v1/metrics`).
    """

    name = "otel"

    def __init__(
        self,
        exporter: "SpanExporter | None" = None,
        endpoint: str | None = None,
        *,
        content: bool = False,
        limit: int = 8192,
        service: str = "subagent-kit",
    ):
        require("otlp", "opentelemetry")
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self.spans_queued = 0
        """Spans given to the exporter's queue."""
        self.spans_left_out = 0
        """Spans of turns left out because the queue was full."""
        self._content = content
        self._limit = limit
        self._service = service
        self._exporter = _CountingExporter(exporter or _otlp(endpoint))
        self._batch = BatchSpanProcessor(
            cast("SpanExporter", self._exporter),
            max_queue_size=limit,
            max_export_batch_size=min(512, limit),
        )
        self._alerts: AlertCounter | None = None
        if endpoint:
            self._alerts = AlertCounter(_collector(endpoint), service)
        # For a process that ends without closing.
        atexit.register(self._batch.shutdown)

    @property
    def spans_missing(self) -> int:
        """Spans that will not arrive: left out, or refused by the receiver."""
        return self.spans_left_out + self._exporter.failed

    def principal_mismatch(self, turn: TurnRecord) -> None:
        """Counts a reply for another principal; the turn is not named, for a counter is no log."""
        if self._alerts is not None:
            self._alerts.add()

    def turn_ended(self, turn: TurnRecord, trace: Trace, events: Sequence[Event]) -> None:
        """Rebuilds the trace as OpenTelemetry spans and queues them."""
        waiting = self.spans_queued - self._exporter.delivered - self._exporter.failed
        if waiting + len(trace.spans) > self._limit:
            if not self.spans_left_out:
                log.warning(
                    "the OpenTelemetry receiver is too slow: spans are dropped and counted from here on"
                )
            self.spans_left_out += len(trace.spans)
            return
        for span in _spans(turn, trace, events, self._service, content=self._content):
            self._batch.on_end(span)
        self.spans_queued += len(trace.spans)

    def close(self) -> None:
        """Sends what waits, 2 s at most, and says once how many spans did not arrive."""
        self._exporter.until = time.monotonic() + 2.0
        # The exporter's own retries can take 10 s, and `shutdown` waits for them: a thread that ends
        # with the process is left behind instead.
        ending = threading.Thread(target=self._batch.shutdown, name="kit-otel-close", daemon=True)
        ending.start()
        ending.join(2.5)
        total = self.spans_left_out + self.spans_queued
        missing = total - self._exporter.delivered
        if missing:
            log.warning(
                "%d of %d spans did not reach OpenTelemetry; the store has them all", missing, total
            )


class _CountingExporter:
    """Passes batches on and counts what became of them; after `until` it gives up without trying."""

    def __init__(self, exporter: "SpanExporter"):
        self._exporter = exporter
        self.delivered = 0
        self.failed = 0
        self.until: float | None = None

    def export(self, spans: "Sequence[ReadableSpan]") -> "SpanExportResult":
        from opentelemetry.sdk.trace.export import SpanExportResult

        result = SpanExportResult.FAILURE
        try:
            if self.until is None or time.monotonic() < self.until:
                result = self._exporter.export(spans)
        finally:
            if result is SpanExportResult.SUCCESS:
                self.delivered += len(spans)
            else:
                self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _otlp(endpoint: str | None) -> "SpanExporter":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if not endpoint:
        raise SettingsError(
            "OtelSink has nowhere to send to: give it an exporter, or the endpoint of an OTLP/HTTP collector."
        )
    return OTLPSpanExporter(f"{_collector(endpoint)}/v1/traces")


def _collector(endpoint: str) -> str:
    return endpoint.rstrip("/").removesuffix("/v1/traces")


def _spans(
    turn: TurnRecord, trace: Trace, events: Sequence[Event], service: str, *, content: bool
) -> "Iterator[ReadableSpan]":
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    number = int(trace_id(turn.id), 16)
    new_id = RandomIdGenerator().generate_span_id
    flags = TraceFlags(TraceFlags.SAMPLED)
    contexts: dict[str, SpanContext] = {}
    for span in trace.spans:
        contexts[span.id] = SpanContext(number, new_id(), is_remote=False, trace_flags=flags)
    resource = Resource({"service.name": service})
    scope = InstrumentationScope("kit")
    for span in trace.spans:
        name, attributes = _described(span, turn)
        status = Status()
        if content:
            attributes |= {"kit.input": span.input, "kit.output": span.output}
        if span.status == "error":
            # The words of an error may be those of a user: they are content too.
            status = Status(StatusCode.ERROR, span.error if content else None)
        yield ReadableSpan(
            name,
            contexts[span.id],
            contexts.get(span.parent_id or ""),
            resource,
            attributes,
            _decision(trace, events) if span.kind == "turn" else (),
            kind=SpanKind.CLIENT if span.kind == "model" else SpanKind.INTERNAL,
            status=status,
            start_time=_nanoseconds(trace.started_at + span.started),
            end_time=_nanoseconds(trace.started_at + span.ended),
            instrumentation_scope=scope,
        )


def trace_id(turn_id: str) -> str:
    """32 hex digits: the turn's own id where it is one, else made from it."""
    try:
        return uuid.UUID(turn_id).hex
    except ValueError:
        return hashlib.blake2b(turn_id.encode(), digest_size=16).hexdigest()


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _described(span: Span, turn: TurnRecord) -> tuple[str, Attributes]:
    """Name and attributes; tokens stand on model calls only, so that sums over spans are right."""
    attributes: Attributes
    match span.kind:
        case "turn":
            operation = "invoke_workflow"
            subject = turn.pattern
            attributes = {
                "gen_ai.workflow.name": turn.pattern,
                "gen_ai.conversation.id": str(turn.session_key),
                "user.id": turn.user_id,
                "kit.tenant_id": turn.tenant_id,
                "kit.turn_id": turn.id,
                "kit.status": turn.status,
            }
            for card_id, version in span.attributes["versions"].items():
                attributes[f"kit.version.{card_id}"] = version
        case "agent":
            operation = "invoke_agent"
            subject = span.agent
            attributes = {
                "gen_ai.agent.name": span.agent,
                "gen_ai.conversation.id": str(turn.session_key),
            }
        case "tool":
            operation = "execute_tool"
            subject = span.name
            attributes = {
                "gen_ai.tool.name": span.name,
                "gen_ai.tool.call.id": str(span.attributes.get("call_id", "")),
                "gen_ai.agent.name": span.agent,
            }
        case "model":
            operation = "chat"
            subject = str(span.attributes.get("model", ""))
            attributes = {
                "gen_ai.request.model": subject,
                "gen_ai.agent.name": span.agent,
                "gen_ai.usage.input_tokens": span.usage.input_tokens,
                "gen_ai.usage.output_tokens": span.usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": span.usage.cached_tokens,
                "kit.purpose": str(span.attributes.get("purpose", "")),
            }
            if span.usage.cost is not None:
                attributes["kit.cost_usd"] = span.usage.cost
    if span.status == "error":
        attributes["error.type"] = _error_type(span)
    elif span.status == "running":
        attributes["kit.unfinished"] = True
    return f"{operation} {subject}", {"gen_ai.operation.name": operation, **attributes}


def _error_type(span: Span) -> str:
    """An agent's error reads `axis: reason: detail`; other errors are somebody else's words."""
    parts = (span.error or "").split(": ")
    if span.kind == "agent" and len(parts) > 1:
        return parts[1]
    return "_OTHER"


def _decision(trace: Trace, events: Sequence[Event]) -> "Sequence[SpanEvent]":
    """The routing decision, where the turn came to one."""
    from opentelemetry.sdk.trace import Event as SpanEvent

    decision = trace.routing
    if decision is None:
        return ()
    seconds = 0.0
    for event in events:
        if isinstance(event.body, Routing):
            seconds = event.at
            break
    attributes: Attributes = {}
    fields = decision.model_dump(exclude={"outcomes", "left_out", "parts", "has_failsafe"})
    for name, value in fields.items():
        attributes[f"routing.{name}"] = value
    # Never the words of the parts: those are the user's.
    attributes["routing.parts"] = len(decision.parts)
    attributes["routing.left_out"] = decision.left_out.count
    outcomes: list[str] = []
    for outcome in decision.outcomes:
        outcomes.append(f"{outcome.agent}: {outcome.reason or outcome.result}")
    attributes["routing.outcomes"] = tuple(outcomes)
    return [SpanEvent("routing_decision", attributes, _nanoseconds(trace.started_at + seconds))]
