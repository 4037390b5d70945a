"""What the OpenTelemetry sink promises, on the in-memory exporter and on a loopback OTLP receiver."""

import logging
import socket
import threading
import time
import uuid
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from kit.core.errors import SettingsError
from kit.core.trace import trace_of
from kit.sinks.opentelemetry import OtelSink
from kit.sinks.recorder import Sink
from tests.loopback_otlp import otlp_receiver
from tests.sample_turn import a_turn, some_events

TURN = uuid.UUID("0af7651916cd43dd8448eb211c80319c").hex


def send(sink: Sink, turn_id: str = TURN) -> None:
    events = some_events(turn_id)
    turn = a_turn(turn_id).model_copy(
        update={"seconds": 2.0, "status": "ok", "text": "Three beans."}
    )
    sink.turn_ended(turn, trace_of(events), events)


def exported(content: bool = False) -> dict[str, ReadableSpan]:
    """Spans of the sample turn by its own span ids."""
    exporter = InMemorySpanExporter()
    sink = OtelSink(exporter, content=content)
    send(sink)
    sink.close()
    names = [span.id for span in trace_of(some_events()).spans]
    found = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
    return dict(zip(names, found, strict=True))


@pytest.mark.req("PC2-FR-15b")
def test_every_span_arrives_under_its_parent_with_its_own_times():
    spans, trace = exported(), trace_of(some_events())
    ids = {name: span.context.span_id for name, span in spans.items() if span.context}
    for want in trace.spans:
        span = spans[want.id]
        assert span.context and span.context.trace_id == int(TURN, 16)
        assert (span.parent.span_id if span.parent else None) == (
            ids[want.parent_id] if want.parent_id else None
        )
        assert span.start_time == int((1.0 + want.started) * 1e9)
        assert span.end_time == int((1.0 + want.ended) * 1e9)


@pytest.mark.req("PC2-FR-15b")
def test_the_routing_decision_is_an_event_of_the_root_span():
    (event,) = exported()["root"].events
    assert event.name == "routing_decision"
    attributes = dict(event.attributes or {})
    assert attributes["routing.invoked"] == ("shop", "play") and attributes["routing.cap"] == 4
    assert attributes["routing.outcomes"] == ("shop: success", "play: timeout")


def test_spans_carry_the_genai_names_and_tokens_stand_on_model_calls_only():
    spans = exported()
    said = {name: dict(span.attributes or {}) for name, span in spans.items()}
    assert [spans[name].name for name in ("root", "m1", "a1", "k1")] == [
        "invoke_workflow mediated",
        "chat offline",
        "invoke_agent shop",
        "execute_tool find",
    ]
    assert said["m1"]["gen_ai.request.model"] == "offline"
    assert (said["m1"]["gen_ai.usage.input_tokens"], said["m1"]["gen_ai.usage.output_tokens"]) == (
        7,
        3,
    )
    assert said["m1"]["kit.cost_usd"] == 0.5
    assert (said["k1"]["gen_ai.tool.call.id"], said["k1"]["gen_ai.agent.name"]) == ("x1", "shop")
    assert said["root"]["gen_ai.conversation.id"] == "acme/s1"
    assert {
        name for name, attributes in said.items() if "gen_ai.usage.input_tokens" in attributes
    } == {"m1", "m2"}


def test_errors_are_a_status_with_a_type():
    spans = exported(content=True)
    failed = {
        name: span.status.description
        for name, span in spans.items()
        if span.status.status_code is StatusCode.ERROR
    }
    assert failed == {"a2": "invocation: timeout: 12 s", "m2": "503"}
    assert dict(spans["a2"].attributes or {})["error.type"] == "timeout"
    assert not any(span.status.description for span in exported().values()), (
        "an error's words are content"
    )
    assert dict(spans["k2"].attributes or {})["kit.unfinished"] is True


def test_what_people_and_models_said_travels_only_when_asked_for():
    told = "".join(span.to_json() for span in exported().values())
    assert "Three" not in told and "beans" not in told and "nobody heard" not in told
    assert '"routing.parts": 2' in told
    spans = exported(content=True)
    assert dict(spans["a1"].attributes or {})["kit.output"] == "Three."


class Stuck(SpanExporter):
    """Takes one batch and holds it."""

    def __init__(self) -> None:
        self.holding = threading.Event()
        self.free = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.holding.set()
        self.free.wait(600)
        return SpanExportResult.SUCCESS


@pytest.mark.req("PC2-FR-15b")
def test_turns_that_find_the_queue_full_are_left_out_whole_and_counted(
    caplog: pytest.LogCaptureFixture,
):
    exporter = Stuck()
    sink = OtelSink(exporter, limit=16)
    for _ in range(5):
        send(sink)
    size = len(trace_of(some_events()).spans)
    assert (sink.spans_queued, sink.spans_missing) == (2 * size, 3 * size)
    exporter.free.set()
    sink.close()
    assert [record.levelno for record in caplog.records if record.name == "kit.otel"] == [
        logging.WARNING
    ] * 2
    assert f"{3 * size} of {5 * size} spans did not reach" in caplog.text


class Refusing(SpanExporter):
    """Takes nothing."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.FAILURE


@pytest.mark.req("PC2-FR-15b")
def test_spans_the_receiver_refused_are_counted():
    sink = OtelSink(Refusing())
    send(sink)
    sink.close()
    assert sink.spans_missing == sink.spans_queued == len(trace_of(some_events()).spans)


@pytest.mark.req("PC2-FR-15b")
@pytest.mark.parametrize("path", ["", "/v1/traces", "/tenant"])
def test_spans_and_the_decision_reach_an_otlp_receiver(path: str):
    with otlp_receiver() as receiver:
        sink = OtelSink(endpoint=receiver.url + path, service="helpdesk")
        send(sink)
        sink.close()
        (received,) = receiver.requests
    assert received[0] == ("/tenant/v1/traces" if path == "/tenant" else "/v1/traces")
    (resource,) = received[1].resource_spans
    assert resource.resource.attributes[0].value.string_value == "helpdesk"
    spans = resource.scope_spans[0].spans
    assert sink.spans_missing == 0 and len(spans) == sink.spans_queued
    assert {span.trace_id.hex() for span in spans} == {TURN}
    (root,) = (span for span in spans if not span.parent_span_id)
    assert [event.name for event in root.events] == ["routing_decision"]


def test_a_receiver_that_is_not_there_costs_a_bounded_close_and_one_warning(
    caplog: pytest.LogCaptureFixture,
):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        sink = OtelSink(endpoint=f"http://127.0.0.1:{unused.getsockname()[1]}")
        send(sink)
        began = time.monotonic()
        sink.close()
        assert time.monotonic() - began < 8, "the exporter tries for 10 s"
    sink._exporter.shutdown()  # and draws its pauses at random meanwhile, which a test of properties takes for its own
    assert len([record for record in caplog.records if record.name == "kit.otel"]) == 1


def test_a_sink_with_nowhere_to_send_to_says_so():
    with pytest.raises(SettingsError, match="give it an exporter, or the endpoint"):
        OtelSink()
