"""The endpoint of the scripted models, in the player's process: it outlives the system, and counts what that asks."""

import json
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kit.conformance.composer import (
    JSON,
    ModelTurn,
    child_turn,
    last_of_user,
    orchestrator_turn,
)
from kit.conformance.scenario import Composer, Scenario

ORCHESTRATOR = "orchestrator"
"""The name of the model that leads; a child's model is called like the child."""


@dataclass
class Play:
    """One scenario as it is played: its models' script, and what the endpoint saw of it."""

    scenario: Scenario
    composer: Composer
    times: list[float] = field(default_factory=list[float])
    """When each request came, on the clock of the machine."""
    calls_made: Counter[str] = field(default_factory=Counter[str])
    """Requests by model."""
    openings: dict[str, str] = field(default_factory=dict[str, str])
    """Model -> the last message of the user at its first request."""
    refusals: int = 0
    tools_called: list[str] = field(default_factory=list[str])
    """The tools that the orchestrator's model called, in order."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: JSON) -> ModelTurn | None:
        """What the model says; None where the endpoint refuses with 429."""
        model = str(request["model"]).rsplit("/", 1)[-1]
        messages = request["messages"]
        tools = request.get("tools") or ()
        with self.lock:
            self.times.append(time.monotonic())
            self.calls_made[model] += 1
            number = self.calls_made[model]
            opening = self.openings.setdefault(model, last_of_user(messages))
            if model != ORCHESTRATOR:
                children = {child.name: child for child in self.scenario.children}
                return child_turn(children[model], number, messages, tools, opening)
            turn = orchestrator_turn(self.scenario, self.composer, messages, tools, opening)
            if self._refuses(turn, number):
                self.refusals += 1
                return None
            if not turn.text:
                self.tools_called += [call.name for call in turn.calls]
            return turn

    def _refuses(self, turn: ModelTurn, number: int) -> bool:
        if self.scenario.model == "storm_passes":
            # The first of each pair: a client that tries again is answered.
            return number % 2 == 1
        composes = bool(self.tools_called)
        return self.scenario.model == "storm_stays" and composes


class Endpoint(ThreadingHTTPServer):
    """Chat Completions over HTTP for any number of plays, each under an address of its own."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plays: dict[str, Play] = {}

    def add(self, name: str, play: Play) -> str:
        """The base URL of a play's models."""
        self.plays[name] = play
        return f"http://127.0.0.1:{self.server_port}/{name}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed, or gives up, closes its connection: that is what is played here."""


@contextmanager
def serve_models() -> Generator[Endpoint]:
    """Serves scripted models on a free port of this machine until the block ends."""
    endpoint = Endpoint()
    thread = threading.Thread(
        target=endpoint.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.shutdown()
        endpoint.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes; without this each answer waits for the acknowledgement of the first.
    disable_nagle_algorithm = True
    server: Endpoint  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing on stderr."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        request: JSON = json.loads(self.rfile.read(length))
        play = self.server.plays.get(self.path.strip("/").split("/")[0])
        if play is None or not self.path.endswith("/chat/completions"):
            self._send(404, {"error": {"message": f"nothing at {self.path}"}})
            return
        turn = play.answer(request)
        if turn is None:
            error = {
                "message": "Rate limit reached",
                "type": "requests",
                "code": "rate_limit_exceeded",
            }
            self._send(429, {"error": error}, {"retry-after": "0.05"})
        elif request.get("stream"):
            self._stream(turn, request["model"])
        else:
            self._send(200, _completion(turn, request["model"]))

    def _send(self, status: int, body: JSON, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, turn: ModelTurn, model: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for delta, finish in _deltas(turn):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = _head(model, "chat.completion.chunk") | {"choices": [choice]}
            if finish:
                chunk["usage"] = _USAGE
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


_USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def _head(model: str, kind: str) -> JSON:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _tool_calls(turn: ModelTurn) -> list[JSON]:
    calls: list[JSON] = []
    for call in turn.calls:
        function = {"name": call.name, "arguments": call.arguments}
        calls.append({"id": call.id, "type": "function", "function": function})
    return calls


def _completion(turn: ModelTurn, model: str) -> JSON:
    message: JSON = {"role": "assistant", "content": turn.text or None}
    finish = "stop"
    if turn.calls:
        message["tool_calls"] = _tool_calls(turn)
        finish = "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return _head(model, "chat.completion") | {"choices": [choice], "usage": _USAGE}


def _deltas(turn: ModelTurn) -> Iterator[tuple[JSON, str | None]]:
    yield {"role": "assistant", "content": ""}, None
    if turn.text:
        yield {"content": turn.text}, None
    for place, call in enumerate(_tool_calls(turn)):
        yield {"tool_calls": [{"index": place, **call}]}, None
    finish = "stop"
    if turn.calls:
        finish = "tool_calls"
    yield {}, finish
