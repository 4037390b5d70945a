"""An MCP server of twenty lines, as a process of its own or over HTTP, and a stranger's deck that names it."""

import json
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

SERVER = """\
import json
import sys

WORDS = "How many packs of a product the shop has in stock."
FIELDS = {"product": {"type": "string", "description": "What is asked for, such as tea or coffee."}}
TOOLS = [{"name": "stock", "description": WORDS, "inputSchema": {"type": "object", "properties": FIELDS}}]


def answer(method, params):
    if method == "initialize":
        about = {"name": "shop", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "There are 4 packs of tea on shelf 7."}]}


def reply(message):
    result = answer(message["method"], message.get("params", {}))
    outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
    return {"jsonrpc": "2.0", "id": message["id"], **outcome}


for line in sys.stdin:
    if "id" in (message := json.loads(line)):
        print(json.dumps(reply(message)), flush=True)
"""
LOOP = SERVER[SERVER.index("for line") :]
CARDS = {
    "lead": {
        "description": "Passes each question to the desk that can answer it.",
        "sub_agents": ["desk"],
    },
    "desk": {
        "description": "Knows how many packs of tea and coffee the shop has in stock.",
        "tools": ["shop.stock"],
    },
}


def write_deck(root: Path, text: str = SERVER, **server: Any) -> Path:
    """A deck's folder with the server beside it; `server` stands in deck.yaml in the place of the command."""
    folder = root / "helpdesk"
    folder.mkdir(exist_ok=True)
    (root / "models.yaml").write_text("{}\n")
    for name, card in CARDS.items():
        (folder / f"{name}.yaml").write_text(
            yaml.safe_dump({"id": name, "model": "offline", **card})
        )
    (folder / "server.py").write_text(text)
    command = {} if "url" in server else {"command": [sys.executable, "server.py"]}
    deck = {"orchestrator": "lead", "required_blocks": [], "mcp": {"shop": {**command, **server}}}
    (folder / "deck.yaml").write_text(yaml.safe_dump(deck, sort_keys=False, width=200))
    return folder


def rewrite(folder: Path, old: str, new: str) -> None:
    """Changes the server's code."""
    text = (folder / "server.py").read_text()
    assert old in text
    (folder / "server.py").write_text(text.replace(old, new))


@contextmanager
def over_http(
    text: str = SERVER, respond: Callable[[BaseHTTPRequestHandler, bytes], bool] | None = None
) -> Generator[Any]:
    """The same server on a loopback socket; `respond` may answer a request in its place. Yields URL and headers."""
    scope: dict[str, Any] = {}
    exec(text.replace(LOOP, ""), scope)
    headers: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers.append({name.lower(): value for name, value in self.headers.items()})
            body = json.dumps(scope["reply"](message)).encode() if "id" in message else b""
            if respond is not None and message["method"] == "tools/call" and respond(self, body):
                return
            self.send_response(200 if body else 202)
            self.send_header("content-type", "application/json")
            if message["method"] == "initialize":
                self.send_header("mcp-session-id", f"session-{len(headers)}")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_DELETE(self) -> None:
            self.send_error(405)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *_: Any, **__: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", headers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
