"""A scripted server on 127.0.0.1 that speaks Chat Completions and Responses, streaming and not;
there is no model in it."""

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

JSON = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call of the model's own."""

    name: str
    arguments: JSON
    id: str = "call_1"


@dataclass(frozen=True)
class Say:
    """A reply: text in `pieces` (one chunk each when streamed), then tool calls. `drip`: seconds before each chunk."""

    pieces: Sequence[str] = ()
    calls: Sequence[Call] = ()
    usage: tuple[int, int] = (11, 7)
    drip: float = 0.0
    together: threading.Barrier | None = None
    """The reply begins when as many requests as this barrier asks for are waiting for theirs."""
    cut: bool = False
    """The token limit was reached before the end."""
    filtered: bool = False
    """The provider's filter ended it before its end."""
    wait: float = 0.0
    """Seconds before the first byte."""
    whole: bool = False
    """Not streamed, whatever was asked for."""
    lost: bool = False
    """The stream ends after the text, in order and without the reason why."""
    broken: bool = False
    """The connection is closed after the text."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def finish(self) -> str:
        if self.filtered:
            return "content_filter"
        return "length" if self.cut else "tool_calls" if self.calls else "stop"


@dataclass(frozen=True)
class Refuse:
    """An HTTP error."""

    status: int
    message: str
    retry_after: float | None = None
    """Seconds that the client is asked to wait; None asks for a thousandth."""
    code: str | None = None
    """The endpoint's own name for the fault."""


@dataclass(frozen=True)
class Raw:
    """A body that is not what the client expects."""

    body: str
    kind: str = "application/json"


@dataclass(frozen=True)
class Hang:
    """No answer until the client gives up."""


Reply = Say | Refuse | Raw | Hang


@dataclass
class Loopback:
    """The script still to be played, and every request seen. With `key` set, any other bearer is answered 401.

    With `strict`, a request is answered 400 unless each tool call in it is answered once, at once and not by nothing.
    """

    url: str
    script: list[Reply] = field(default_factory=list[Reply])
    requests: list[JSON] = field(default_factory=list[JSON])
    paths: list[str] = field(default_factory=list[str])
    bearers: list[str] = field(default_factory=list[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    key: str | None = None
    strict: bool = False
    answer: Callable[[JSON], Reply] | None = None
    """Replies by what is asked, once the script is over."""
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when a client closed its connection before the reply was through."""
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def plays(self, *replies: Reply) -> "Loopback":
        self.script.extend(replies)
        return self

    def next_reply(self, path: str, bearer: str, request: JSON) -> Reply:
        with self.lock:
            self.paths.append(path)
            self.bearers.append(bearer)
            self.requests.append(request)
            if self.key is not None and bearer != self.key:
                return Refuse(401, f"Incorrect API key provided: {bearer[:3]}****.")
            if self.strict and (wrong := _unanswered(request)):
                return Refuse(400, wrong)
            if not self.script and self.answer is None:
                return Refuse(400, "the script is over")
            reply = (
                self.script.pop(0) if self.script or self.answer is None else self.answer(request)
            )
        offered = {
            tool.get("name") or tool["function"]["name"] for tool in request.get("tools", [])
        }
        if isinstance(reply, Say) and not {call.name for call in reply.calls} <= offered:
            return Refuse(400, "the script calls a tool that was not offered")
        return reply


def _unanswered(request: JSON) -> str:
    """What a strict endpoint finds wrong with the tool calls of a request, in either API; empty when nothing is."""
    waiting: list[str] = []
    known: set[str] = set()
    for item in request.get("messages") or request["input"]:
        made = [call["id"] for call in item.get("tool_calls") or ()]
        answered = item.get("role") == "tool" or item.get("type") == "function_call_output"
        if item.get("type") == "function_call":
            made = [item["call_id"]]
        elif not answered and waiting:
            return f"calls without a result: {waiting}"
        if known & set(made) or len(set(made)) < len(made) or not all(made):
            return f"call ids that are missing or not unique: {made}"
        known |= set(made)
        waiting += made
        if answered:
            call_id = item.get("tool_call_id") or item.get("call_id")
            if call_id not in waiting:
                return f"a result for {call_id!r}, which waits for none"
            if not str(item.get("content") or item.get("output") or "").strip():
                return f"an empty result for {call_id!r}"
            waiting.remove(call_id)
    return f"calls without a result: {waiting}" if waiting else ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state = Loopback(url=f"http://127.0.0.1:{self.server_address[1]}/v1")

    def handle_error(self, request: Any, client_address: Any) -> None:
        if isinstance(sys.exception(), ConnectionError):
            self.state.hung_up.set()
        else:
            super().handle_error(request, client_address)


@contextmanager
def loopback() -> Generator[Loopback]:
    """A server of its own thread and port, gone at the end."""
    server = _Server()
    state = server.state
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        state = cast("_Server", self.server).state
        state.headers.append({name.lower(): value for name, value in self.headers.items()})
        try:
            match state.next_reply(self.path, bearer, request):
                case Say() as say:
                    self._say(say, request)
                case Refuse(status, message, retry_after, code):
                    pause = (
                        {"retry-after-ms": "1"}
                        if retry_after is None
                        else {"Retry-After": f"{retry_after:g}"}
                    )
                    self._send(
                        json.dumps(
                            {"error": {"message": message, "type": "simulated", "code": code}}
                        ),
                        status,
                        **pause,
                    )
                case Raw(body, kind):
                    self._send(body, 200, kind)
                case Hang():
                    self._wait(state)
        except (BrokenPipeError, ConnectionResetError):
            state.hung_up.set()
            self.close_connection = True

    def _say(self, say: Say, request: JSON) -> None:
        responses = self.path.endswith("/responses")
        time.sleep(say.wait)
        if say.together is not None:
            say.together.wait(60)
        if not request.get("stream") or say.whole:
            time.sleep(say.drip)
            whole = (
                _response(say, request, "incomplete" if say.cut else "completed")
                if responses
                else _completion(say)
            )
            if say.broken:
                self._send("{", 200, **{"Content-Length": "1000"})
                self.connection.shutdown(socket.SHUT_RDWR)
                raise ConnectionResetError
            self._send(json.dumps(whole), 200)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in _response_events(say, request) if responses else _chunks(say, request):
            time.sleep(say.drip)
            if (say.broken or say.lost) and _says_why_it_ends(event):
                if say.lost:
                    break
                self.connection.shutdown(socket.SHUT_RDWR)
                raise ConnectionResetError
            name = f"event: {event['type']}\n" if responses else ""
            self._chunk(f"{name}data: {json.dumps(event)}\n\n")
        if not responses and not say.lost:
            self._chunk("data: [DONE]\n\n")
        self._chunk("")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _send(self, body: str, status: int, kind: str = "application/json", **headers: str) -> None:
        data = body.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _wait(self, state: Loopback) -> None:
        self.connection.settimeout(0.02)
        while not state.stopping.is_set():
            try:
                if not self.connection.recv(1):
                    state.hung_up.set()
                    break
            except TimeoutError:
                continue
            except OSError:
                state.hung_up.set()
                break
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _usage(say: Say) -> JSON:
    read, written = say.usage
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _tool_call(call: Call) -> JSON:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
    }


def _completion(say: Say) -> JSON:
    message: JSON = {"role": "assistant", "content": say.text or None}
    if say.calls:
        message["tool_calls"] = [_tool_call(call) for call in say.calls]
    choice = {"index": 0, "message": message, "finish_reason": say.finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [choice],
        "usage": _usage(say),
    }


def _chunks(say: Say, request: JSON) -> Iterator[JSON]:
    def chunk(delta: JSON, finish: str | None = None) -> JSON:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "stub",
            "choices": choices,
        }

    yield chunk({"role": "assistant", "content": ""})
    for piece in say.pieces:
        yield chunk({"content": piece})
    for index, call in enumerate(say.calls):
        whole = _tool_call(call)
        arguments = whole["function"]["arguments"]
        whole["function"] = {"name": call.name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, **whole}]})
        for part in (arguments[:5], arguments[5:]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, say.finish)
    if (request.get("stream_options") or {}).get("include_usage"):
        yield {**chunk({}), "choices": [], "usage": _usage(say)}


def _says_why_it_ends(event: JSON) -> bool:
    choices = event.get("choices") or [{}]
    return bool(choices[0].get("finish_reason")) or event.get("type") in (
        "response.completed",
        "response.incomplete",
    )


def _output(say: Say) -> list[JSON]:
    items: list[JSON] = []
    if say.pieces:
        content = [{"type": "output_text", "text": say.text, "annotations": []}]
        items.append(
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": content,
            }
        )
    for number, call in enumerate(say.calls):
        arguments = json.dumps(call.arguments)
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments,
        }
        items.append({**item, "status": "completed"})
    return items


def _response(say: Say, request: JSON, status: str) -> JSON:
    done = status != "in_progress"
    read, written = say.usage
    details = {
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "resp_2" if request.get("previous_response_id") else "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "stub",
        "output": _output(say) if done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "previous_response_id": request.get("previous_response_id"),
        "usage": {
            "input_tokens": read,
            "output_tokens": written,
            "total_tokens": read + written,
            **details,
        }
        if done
        else None,
    }


def _response_events(say: Say, request: JSON) -> Iterator[JSON]:
    for number, event in enumerate(_unnumbered(say, request)):
        yield {**event, "sequence_number": number}


def _unnumbered(say: Say, request: JSON) -> Iterator[JSON]:
    yield {"type": "response.created", "response": _response(say, request, "in_progress")}
    for index, item in enumerate(_output(say)):
        added = {**item, "status": "in_progress"}
        where = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            yield {
                "type": "response.output_item.added",
                "output_index": index,
                "item": {**added, "content": []},
            }
            part = {"type": "output_text", "text": "", "annotations": []}
            yield {"type": "response.content_part.added", **where, "content_index": 0, "part": part}
            for piece in say.pieces:
                yield {
                    "type": "response.output_text.delta",
                    **where,
                    "content_index": 0,
                    "delta": piece,
                    "logprobs": [],
                }
            yield {
                "type": "response.output_text.done",
                **where,
                "content_index": 0,
                "text": say.text,
                "logprobs": [],
            }
            yield {
                "type": "response.content_part.done",
                **where,
                "content_index": 0,
                "part": item["content"][0],
            }
        else:
            yield {
                "type": "response.output_item.added",
                "output_index": index,
                "item": {**added, "arguments": ""},
            }
            yield {
                "type": "response.function_call_arguments.delta",
                **where,
                "delta": item["arguments"],
            }
            yield {
                "type": "response.function_call_arguments.done",
                **where,
                "arguments": item["arguments"],
                "name": item["name"],
            }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    status = "incomplete" if say.cut else "completed"
    yield {"type": f"response.{status}", "response": _response(say, request, status)}
