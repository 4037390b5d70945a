"""A loopback stub of the Opik REST API: keeps what the real SDK sends, for tests and a figure to
look at. It is not a server."""

import gzip
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast


class OpikStub(ThreadingHTTPServer):
    """What arrived, as the last write left it: `traces`, `spans`, `experiments` and `links` (their
    items) by id, `datasets` by name, `items` by data set and id, `scores` by trace and name;
    `calls` as (method, path, headers).

    With `refuses` it takes turns and nothing else.

    Asked for /api/fall-silent, it takes connections from then on and answers nothing.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refuses = False
        self.silent, self.over = False, threading.Event()
        self.traces: dict[str, dict[str, Any]] = {}
        self.spans: dict[str, dict[str, Any]] = {}
        self.datasets: dict[str, dict[str, Any]] = {}
        self.items: dict[str, dict[str, dict[str, Any]]] = {}
        self.experiments: dict[str, dict[str, Any]] = {}
        self.links: dict[str, dict[str, Any]] = {}
        self.scores: dict[str, dict[str, float]] = {}
        self.finished: list[str] = []
        self.calls: list[tuple[str, str, dict[str, str]]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api"

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and JSON for one call."""
        match method, path.partition("/v1/private/")[2] or path.rpartition("/api/")[2]:
            case "GET", "is-alive/ping":
                return 200, {"message": "Healthy Server", "healthy": True}
            case "GET", "is-alive/ver":
                return 200, {"version": "loopback stub"}
            case "POST", "projects/retrieve":
                return 200, {"id": "0194f5f0-0000-7000-8000-000000000000", "name": body.get("name")}
            case "POST" | "PUT", "traces/batch" | "spans/batch" as kind:
                kept = self.traces if kind == "traces/batch" else self.spans
                with self.lock:
                    for item in body[kind.partition("/")[0]]:
                        kept.setdefault(item["id"], {}).update(item)
                return 204, {}
            case _, kind:
                with self.lock:
                    return self.study(method, kind, body)

    def study(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Data sets, experiments and scores."""
        if self.refuses:
            return 403, {"errors": ["the stub was told to refuse"]}
        match [method, *path.split("/")]:
            case ["POST", "datasets", "retrieve"] if body["dataset_name"] in self.datasets:
                return 200, self.datasets[body["dataset_name"]]
            case ["POST", "datasets"] if body["name"] not in self.datasets:
                self.datasets[body["name"]] = {
                    "id": f"0194f5f0-0000-7000-8000-{len(self.datasets) + 1:012x}",
                    "name": body["name"],
                }
                return 201, {}
            case ["PUT", "datasets", "items"]:
                kept = self.items.setdefault(body["dataset_name"], {})
                kept.update({item["id"]: item["data"] for item in body["items"]})
                return 204, {}
            case ["PUT", "traces", "feedback-scores"]:
                for score in body["scores"]:
                    self.scores.setdefault(score["id"], {})[score["name"]] = score["value"]
                return 204, {}
            case [_, "experiments", *rest]:
                return self.experiment(method, rest, body)
            case _:
                return 404, {"errors": ["the stub does not know this call, or what it names"]}

    def experiment(
        self, method: str, rest: list[str], body: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        """Experiments and their items."""
        match [method, *rest]:
            case ["POST"] if body["id"] not in self.experiments:
                self.experiments[body["id"]] = body
                return 201, {}
            case ["POST", "items"]:
                self.links.update({link["id"]: link for link in body["experiment_items"]})
                return 204, {}
            case ["POST", "finish"]:
                self.finished += body["ids"]
                return 204, {}
            case ["GET", known] if known in self.experiments:
                return 200, self.experiments[known]
            case ["PATCH", known] if known in self.experiments:
                self.experiments[known].update(body)
                return 204, {}
            case _:
                return 404, {"errors": ["the stub does not know this experiment"]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        stub = cast(OpikStub, self.server)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        path = self.path.partition("?")[0]
        if stub.silent:
            stub.over.wait()
            self.close_connection = True
            return
        stub.silent = path.endswith("/fall-silent")
        with stub.lock:
            stub.calls.append((self.command, path, dict(self.headers.items())))
        status, answer = stub.answer(self.command, path, json.loads(raw or b"{}"))
        payload = b"" if status == 204 else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_POST = do_PUT = do_PATCH = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def opik_stub() -> Generator[OpikStub]:
    """The stub on a free port, until the end of the block."""
    stub = OpikStub()
    thread = threading.Thread(
        target=stub.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield stub
    finally:
        stub.over.set()
        stub.shutdown()
        stub.server_close()
        thread.join(5)
