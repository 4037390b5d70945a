"""What the Opik sink promises, with the real SDK against a loopback stub of its REST API.

The SDK keeps threads and switches for as long as a process lives, so it runs in a process of its
own; the tests read its report.
"""

import json
import os
import socket
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.core.trace import trace_of
from studies.loopback_opik import OpikStub, opik_stub
from tests.forks import Printed, printed_by
from tests.sample_turn import DECISION, some_events

LISTEN = """
import sys
outside = set()

def listen(name, args):
    if name == "socket.connect" and isinstance(args[1], tuple):
        outside.add(str(args[1][0]))
    elif name == "socket.getaddrinfo":
        outside.add(str(args[0]))

sys.addaudithook(listen)
"""

SENDER = """
import asyncio, json, logging, os, time
import httpx
from kit.settings import Settings
from kit.wire import open_kit

async def ask_unconfigured():
    async with open_kit(Settings.read().with_(store=":memory:", pace=0)) as kit:
        await kit.ask("hello", kit.session("s"))

asyncio.run(ask_unconfigured())
imported = [name for name in sys.modules if name.partition(".")[0] in ("opik", "sentry_sdk")]
unconfigured = [imported, sorted(outside)]

warnings = []
catch = logging.Handler(logging.WARNING)
catch.emit = lambda record: warnings.append(record.getMessage())
logging.getLogger("kit.opik").addHandler(catch)
logging.getLogger("kit.opik").propagate = False

from kit.core.trace import trace_of
from kit.sinks.opik import open_opik
from tests.effort import slowness
from tests.sample_turn import a_turn, some_events

def send(name, url, count):
    warnings.clear()
    began = time.monotonic()
    sinks = [open_opik(url=url, project="trial") for _ in range(3)]
    opened, loaded = time.monotonic() - began, "opik" in sys.modules
    if sinks[0] is None:
        return {"open": opened, "loaded": loaded, "warnings": list(warnings), "sinks": sinks}
    [sink.close() for sink in sinks[1:]]
    sink, cpu, before = sinks[0], [], slowness()
    for n in range(count):
        turn, events = a_turn(f"t{n % 5}"), some_events(f"t{n % 5}")
        turn = turn.model_copy(update={"seconds": 2.0, "status": "ok", "text": "Three beans."})
        trace = trace_of(events)
        began = time.thread_time()
        sink.turn_ended(turn, trace, events)
        cpu.append(time.thread_time() - began)
    if name == "dying":
        httpx.get(f"{url}/fall-silent")
    began = time.monotonic()
    sink.close()
    pace = max(before, slowness())
    cpu = [seconds / pace for seconds in cpu]
    return {"cpu": sorted(cpu), "close": time.monotonic() - began, "warnings": list(warnings)}

report = {name: send(name, url, int(count)) for name, url, count in zip(*[iter(sys.argv[1:])] * 3)}
from opik.url_helpers import get_project_url_by_trace_id
from kit.sinks.opik import trace_url
link = trace_url("t1", 1.0, sys.argv[-2])
report["link"] = [link, get_project_url_by_trace_id(link.split("trace_id=")[1].split("&")[0], sys.argv[-2])]
report["outside"] = sorted(outside)
report["unconfigured"] = unconfigured
report["switches"] = {name: os.environ[name] for name in ("OPIK_SENTRY_ENABLE", "OPIK_ANALYTICS_ENABLE")}
report["ended"] = time.time()
print(json.dumps(report))
"""


def apart(code: str, *arguments: str, home: Path) -> Printed:
    """Runs code in a process that knows nothing of this machine's own Opik."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPIK_", "OTEL_", "KIT_"))
    }
    environment = {**ours, "HOME": str(home), "OPIK_DEFAULT_FLUSH_TIMEOUT": "1"}
    return printed_by(code, arguments, environment, home)


@pytest.fixture(scope="module")
def sent(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[tuple[OpikStub, dict[str, Any], str]]:
    """One process that meets a server that never answers, a port nobody listens on, a server, and
    one that goes silent."""
    with (
        opik_stub() as stub,
        opik_stub() as dying,
        socket.socket() as closed,
        socket.socket() as mute,
    ):
        closed.bind(("127.0.0.1", 0))
        mute.bind(("127.0.0.1", 0))
        mute.listen(64)
        urls = {"mute": mute.getsockname()[1], "dead": closed.getsockname()[1]}
        urls |= {"dying": dying.server_address[1], "live": stub.server_address[1]}
        arguments = [
            part
            for name, port in urls.items()
            for part in (name, f"http://127.0.0.1:{port}/api", "20")
        ]
        run = apart(LISTEN + SENDER, *arguments, home=tmp_path_factory.mktemp("home"))
        after = time.time()
        assert run.returncode == 0, run.stderr
        report = json.loads(run.stdout.splitlines()[-1])
        report["exit"] = after - report["ended"]
        yield stub, report, run.stderr


Sent = tuple[OpikStub, dict[str, Any], str]


def trace_and_spans(
    stub: OpikStub, turn_id: str = "t1"
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The trace of one turn, and its spans by the trace's own span ids."""
    (trace,) = (trace for trace in stub.traces.values() if trace["metadata"]["turn_id"] == turn_id)
    spans = [span for span in stub.spans.values() if span["trace_id"] == trace["id"]]
    names = [span.id for span in trace_of(some_events()).spans[1:]]
    return trace, dict(zip(names, sorted(spans, key=lambda span: span["start_time"]), strict=True))


def test_a_turn_arrives_as_one_trace_in_the_thread_of_its_session(sent: Sent):
    trace, _ = trace_and_spans(sent[0])
    assert trace["project_name"] == "trial" and trace["thread_id"] == "acme/s1"
    assert (trace["input"], trace["output"]) == ({"message": "hi"}, {"text": "Three beans."})
    assert trace["start_time"].startswith("1970-01-01T00:00:01") and trace["end_time"].startswith(
        "1970-01-01T00:00:03"
    )
    assert trace["metadata"]["routing"] == DECISION.model_dump(mode="json")
    assert trace["metadata"]["principal"] == {"tenant_id": "acme", "user_id": "ann"}
    assert trace["tags"] == ["mediated", "ok"]
    assert "error_info" not in trace


def test_the_link_to_a_turn_is_what_the_sdk_itself_would_give(sent: Sent):
    trace, _ = trace_and_spans(sent[0])
    ours, sdks = sent[1]["link"]
    assert ours == sdks and f"trace_id={trace['id']}&" in ours


@pytest.mark.req("SO-5")
def test_spans_arrive_under_their_parents_with_their_times(sent: Sent):
    trace, spans = trace_and_spans(sent[0])
    assert {name: span.get("parent_span_id") for name, span in spans.items()} == {
        "m1": None,
        "a1": None,
        "a2": None,
        "k1": spans["a1"]["id"],
        "m2": None,
        "k2": None,
    }
    assert {span["type"] for span in spans.values()} == {"general", "llm", "tool"}
    assert spans["m1"]["start_time"].startswith("1970-01-01T00:00:01.125")
    assert spans["m1"]["end_time"].startswith("1970-01-01T00:00:01.25")
    assert spans["k1"]["output"] == {"text": "3 found"}
    assert {
        UUID(key).version for key in [trace["id"], *(span["id"] for span in spans.values())]
    } == {7}


def test_tokens_and_cost_arrive_once_on_the_model_calls(sent: Sent):
    _, spans = trace_and_spans(sent[0])
    used = {
        name: (span["usage"], span["total_estimated_cost"], span["model"])
        for name, span in spans.items()
        if "usage" in span
    }
    assert set(used) == {"m1", "m2"}
    tokens, cost, model = used["m1"]
    assert (tokens["prompt_tokens"], tokens["completion_tokens"], tokens["total_tokens"]) == (
        7,
        3,
        10,
    )
    assert (cost, model) == (0.5, "offline")


def test_errors_arrive_on_the_spans_that_failed(sent: Sent):
    _, spans = trace_and_spans(sent[0])
    errors = {
        name: span["error_info"]["message"] for name, span in spans.items() if "error_info" in span
    }
    assert errors == {"a2": "invocation: timeout: 12 s", "m2": "503"}


def test_sending_a_turn_again_overwrites_it(sent: Sent):
    assert len(sent[0].traces) == 5, "twenty sends of five turns"
    assert len(sent[0].spans) == 5 * (len(trace_of(some_events()).spans) - 1)


def test_a_live_server_gets_everything_without_a_word(sent: Sent):
    _, report, stderr = sent
    assert report["live"]["warnings"] == []
    assert stderr == ""


@pytest.mark.parametrize("server", ["dead", "mute"])
def test_a_server_that_does_not_answer_costs_a_second_and_one_warning_however_often_it_is_opened(
    sent: Sent, server: str
):
    report = sent[1][server]
    assert report["sinks"] == [None, None, None] and not report["loaded"], (
        "its SDK is not even imported"
    )
    assert report["open"] < 60
    (warning,) = report["warnings"]
    assert "does not answer: nothing is sent there, the store has every turn" in warning


def test_a_server_that_goes_silent_costs_a_short_close_and_one_warning(sent: Sent):
    report = sent[1]["dying"]
    assert report["close"] < 120
    (warning,) = report["warnings"]
    assert "went silent: up to 20 turns are missing there" in warning
    assert sent[1]["exit"] < 120


def test_handing_a_turn_over_takes_under_two_milliseconds_of_cpu(sent: Sent):
    middle = [sent[1][server]["cpu"][10] for server in ("live", "dying")]
    assert max(middle) < 0.002


def test_nothing_is_sent_to_anyone_else(sent: Sent):
    assert sent[1]["outside"] == ["127.0.0.1"]
    assert sent[1]["switches"] == {"OPIK_SENTRY_ENABLE": "false", "OPIK_ANALYTICS_ENABLE": "false"}
    assert {path.partition("/api/")[2].partition("?")[0] for _, path, _ in sent[0].calls} <= {
        "is-alive/ping",
        "v1/private/traces/batch",
        "v1/private/spans/batch",
    }


def test_unconfigured_the_sdk_is_never_imported_and_nothing_is_sent(sent: Sent):
    assert sent[1]["unconfigured"] == [[], []]
