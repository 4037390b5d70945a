"""MCP servers that are gone, slow, enormous or untruthful: each a typed fault of one call."""

import asyncio
import gc
import os
import re
import signal
import time
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit import open_kit
from kit.core.bodies.call import ToolEnded
from kit.core.errors import BindError
from kit.models.scripted import Line, ScriptedModel
from kit.tools.mcp.tools import ALWAYS, accept
from kit.wire import Kit
from tests.house.test_embedding import until
from tests.kits import OFFLINE, asks, bodies, leading, logged, repeats
from tests.mcp_servers import SERVER, over_http, rewrite, write_deck

pytestmark = pytest.mark.realtime
QUESTION = "how many packs of tea are in stock?"
SHELF = "There are 4 packs of tea on shelf 7."
CALLED = 'if method == "tools/call":\n'


async def accepted(folder: Path, **variables: str) -> Path:
    """The deck, its servers accepted as they are now."""
    from kit.compose.read import read_outline

    await accept(
        read_outline(folder).settings.mcp, folder, {"PATH": os.environ["PATH"], **variables}
    )
    return folder


@asynccontextmanager
async def kit_of(folder: Path, **variables: str) -> AsyncGenerator[Kit]:
    """A kit whose desk calls the tool once in each turn."""
    call = Line(calls=[("shop__stock", {"product": "tea"})])
    desk = ScriptedModel(lambda seen: repeats(seen) if seen[-1].type == "tool" else call)
    settings = OFFLINE.with_(deck=folder, variables={"PATH": os.environ["PATH"], **variables})
    async with open_kit(
        settings, models={"lead": leading(asks("desk")), "desk": desk}, faults=True
    ) as kit:
        yield kit


async def result(kit: Kit, session: str = "s") -> str:
    """How the tool call of a turn ended: its result, or its fault with the reason first."""
    reply = await kit.ask(QUESTION, kit.session(session))
    [end] = bodies(reply, ToolEnded)
    return end.error or end.result


def inside(line: str) -> str:
    """The server, with a line more in its tool."""
    return SERVER.replace(CALLED, f"{CALLED}        {line}\n")


LARGE = "contract_violation: .*more than 1,000,000 bytes"
KEPT = r"(tea ){24900,25000}t?e?a?\n\[the trace keeps no more of 880,000 characters, sha256 [0-9a-f]{64}\]$"
"""A result under the limit of bytes came whole; an event keeps its beginning, its length and its hash."""
UNTRUTHFUL = {
    "slow": ("__import__('time').sleep(600)", "timeout: "),
    "enormous": (
        "return {'content': [{'type': 'text', 'text': 'x' * 2_000_000}]}",
        LARGE,
    ),
    "large": ("return {'content': [{'type': 'text', 'text': 'tea ' * 220_000}]}", KEPT),
    "no result": ("return {'content': 'words'}", "contract_violation: "),
    "an error": (
        "return {'content': [{'type': 'text', 'text': 'disk full'}], 'isError': True}",
        "exception: .*disk full",
    ),
    "a key in an error": (
        "return {'content': [{'type': 'text', 'text': 'sk-proj-"
        + "a1b2c3d4" * 5
        + " is refused'}],"
        " 'isError': True}",
        r"exception: (?!.*a1b2c3d4).* is refused",
    ),
    "nested garbage": ("print('[' * 200_000)", "There are 4 packs"),
    "half an emoji": (
        "return {'content': [{'type': 'text', 'text': 'Four ' + chr(0xd83c)}]}",
        r"Four \?$",
    ),
    "words on stderr": ("sys.stderr.write('x' * 3_000_000)", "There are 4 packs"),
}


class _Visitor:
    """What somebody keeps about a visitor while a turn runs."""


_visitor: ContextVar[_Visitor | None] = ContextVar("visitor", default=None)


UNTIL_IT_IS_UP = inside("__import__('os').stat('up')")
"""The server, which dies of its first call until somebody has made that file."""


@pytest.mark.req("K-1")
async def test_a_session_that_goes_on_keeps_nothing_of_the_turn_that_opened_it(tmp_path: Path):
    folder = await accepted(write_deck(tmp_path, UNTIL_IT_IS_UP))
    async with kit_of(folder) as kit:
        assert (await result(kit)).startswith("unavailable: ")
        (folder / "up").touch()

        async def ask_as_visitor() -> "weakref.ref[_Visitor]":
            visitor = _Visitor()
            _visitor.set(visitor)
            assert await result(kit) == SHELF
            return weakref.ref(visitor)

        visitor = await asyncio.create_task(ask_as_visitor())

        def is_gone() -> bool:
            gc.collect()
            return visitor() is None

        await until(is_gone, 30.0)
        assert await result(kit, "another") == SHELF


@pytest.mark.req("K-1")
@pytest.mark.parametrize("case", UNTRUTHFUL)
async def test_a_process_that_misbehaves_is_a_typed_fault_of_the_call(case: str, tmp_path: Path):
    """A message has a million bytes here because the deck says nothing of them."""
    line, words = UNTRUTHFUL[case]
    timeout_ms = 200 if case == "slow" else 60_000
    folder = await accepted(write_deck(tmp_path, inside(line), timeout_ms=timeout_ms))
    async with kit_of(folder) as kit:
        said = await result(kit)
        assert re.match(words, said), said


OVER_HTTP = {
    "slow": "timeout: ",
    "enormous": LARGE,
    "compressed": "contract_violation: .*answered compressed",
    "an error page": "exception: ",
    "another host": "exception: ",
    "a key that ended": "unavailable: .*does not take the key",
}


def respond(case: str, handler: BaseHTTPRequestHandler) -> bool:
    if case == "slow":
        time.sleep(0.6)
        return False

    status = {"an error page": 502, "another host": 307, "a key that ended": 401}.get(case, 200)
    handler.send_response(status)
    if case == "another host":
        handler.send_header("location", "http://127.0.0.2:9/mcp")
    if case == "compressed":
        handler.send_header("content-encoding", "gzip")
    handler.send_header("content-type", "application/json" if status == 200 else "text/html")
    handler.send_header("content-length", "0" if status != 200 else "2000000")
    handler.end_headers()
    for _ in range(200 if status == 200 else 0):
        handler.wfile.write(b"x" * 10_000)
    return True


@pytest.mark.req("K-1")
@pytest.mark.parametrize("case", OVER_HTTP)
async def test_an_endpoint_that_misbehaves_is_a_typed_fault_of_the_call(case: str, tmp_path: Path):
    with over_http(respond=lambda handler, _: respond(case, handler)) as (url, _):
        time_ms = 200 if case == "slow" else 60_000
        deck = write_deck(tmp_path, url=url, most_bytes=1_000_000, timeout_ms=time_ms)
        folder = await accepted(deck)
        async with kit_of(folder) as kit:
            said = await result(kit)
    assert re.match(OVER_HTTP[case], said), said


@pytest.mark.req("K-1")
async def test_a_result_that_breaks_the_servers_own_schema_is_a_fault(tmp_path: Path):
    text = SERVER.replace(
        '"inputSchema"', '"outputSchema": {"type": "object", "required": ["packs"]}, "inputSchema"'
    )
    text = text.replace('"shelf 7."}]}', '"shelf 7."}], "structuredContent": {"pack": 4}}').replace(
        'on shelf 7."}]}', 'on shelf 7."}], "structuredContent": {"pack": 4}}'
    )
    async with kit_of(await accepted(write_deck(tmp_path, text))) as kit:
        said = await result(kit)
    assert said.startswith("contract_violation: ") and "'packs' is a required property" in said


@pytest.mark.req("K-1")
async def test_a_server_is_made_to_fail_on_purpose_as_any_service(tmp_path: Path):
    async with kit_of(await accepted(write_deck(tmp_path))) as kit:
        for kind, words in (("down", "unavailable: injected"), ("partial", SHELF)):
            reply = await kit.ask(QUESTION, kit.session(kind), faults=[f"desk={kind}"])
            [end] = bodies(reply, ToolEnded)
            assert (end.error or end.result).startswith(words)
            assert (end.caveat is not None) == (kind == "partial")
        assert await result(kit, "s2") == SHELF


# Limits as of any tool


@pytest.mark.req("K-1")
async def test_calls_at_the_same_time_share_one_session(tmp_path: Path):
    starts = "open('starts', 'a').write('x')\n"
    folder = await accepted(write_deck(tmp_path, starts + SERVER))
    (folder / "starts").unlink()
    async with kit_of(folder) as kit:
        assert set(await asyncio.gather(*(result(kit, f"s{n}") for n in range(5)))) == {SHELF}
    assert (folder / "starts").read_text() == "x"


# Lost and found


@pytest.mark.req("K-1")
async def test_a_server_that_goes_on_without_listening_is_started_again(tmp_path: Path):
    deaf = "import os, threading, time; os.close(0); threading.Thread(target=time.sleep, args=(30,)).start()"
    folder = await accepted(write_deck(tmp_path, inside(deaf)))
    async with kit_of(folder) as kit:
        said = [await result(kit, session) for session in ("s1", "s2", "s3")]
    assert said[0] == said[2] == SHELF and said[1].startswith("unavailable: ")


@pytest.mark.req("K-1")
async def test_a_list_that_changes_while_it_is_used_is_refused(tmp_path: Path):
    change = (
        "TOOLS[0]['description'] = 'Sells tea.'; "
        "print(json.dumps({'jsonrpc': '2.0', 'method': 'notifications/tools/list_changed'}), flush=True)"
    )
    folder = await accepted(write_deck(tmp_path, inside(change)))
    async with kit_of(folder) as kit:
        rewrite(
            folder, "How many packs of a product the shop has in stock.", "Sells tea."
        )  # it may have to be started again
        await result(kit, "s1")
        refused = await result(kit, "s2")
    assert (
        refused.startswith("contract_violation: ") and '+  "description": "Sells tea."' in refused
    )


@pytest.mark.req("K-1")
async def test_a_session_that_the_endpoint_has_forgotten_is_opened_anew(tmp_path: Path):
    sessions: list[str] = []

    def forgetful(handler: BaseHTTPRequestHandler, _: bytes) -> bool:
        sessions.append(handler.headers["mcp-session-id"])
        if len(sessions) == 1:
            handler.send_error(404)
        return len(sessions) == 1

    with over_http(respond=forgetful) as (url, _):
        async with kit_of(await accepted(write_deck(tmp_path, url=url))) as kit:
            assert (await result(kit, "s1")).startswith("unavailable: ")
            assert await result(kit, "s2") == SHELF
    assert len(set(sessions)) == 2


# Starting and ending


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.req("K-1")
async def test_a_server_that_will_not_end_is_killed_with_its_children(tmp_path: Path):
    stubborn = (
        "import os, signal, subprocess, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], stdout=subprocess.DEVNULL)\n"
        "open('pids', 'w').write(f'{os.getpid()} {child.pid}')\n"
    )
    folder = await accepted(write_deck(tmp_path))
    (folder / "server.py").write_text(f"{stubborn}{SERVER}__import__('time').sleep(600)\n")
    async with kit_of(folder) as kit:
        assert await result(kit) == SHELF
        pids = [int(pid) for pid in (folder / "pids").read_text().split()]
        assert all(map(alive, pids))
    await until(
        lambda: not any(map(alive, pids))
    )  # a busy machine takes its time to end who was killed


@pytest.mark.req("K-1")
async def test_a_child_that_keeps_the_servers_pipes_does_not_keep_the_kit_from_closing(
    tmp_path: Path,
):
    away = "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    away += "open('pid', 'w').write(str(child.pid))\n"
    folder = await accepted(write_deck(tmp_path))
    (folder / "server.py").write_text(away + SERVER)
    async with kit_of(folder) as kit:
        assert await result(kit) == SHELF
        began = time.monotonic()
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    assert time.monotonic() - began < 120


@pytest.mark.req("K-1")
@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"command": ["no-such-program"]}, "No such file or directory"),
        (
            {"command": ["sh", "-c", "echo the licence has expired >&2; exit 3"]},
            "Its last words:\nthe licence has expired",
        ),
        ({"command": ["sleep", "60"], "connect_ms": 300}, "it did not answer in time"),
    ],
)
async def test_a_server_that_cannot_be_used_is_one_sentence_at_the_start(
    server: dict[str, Any], words: str, tmp_path: Path
):
    with pytest.raises(BindError) as error:
        await accepted(write_deck(tmp_path, **server))
    assert str(error.value).startswith("MCP server 'shop' cannot be used: ") and words in str(
        error.value
    )


# Keys


@pytest.mark.req("K-1")
async def test_what_a_server_is_told_stands_in_no_event_no_error_and_no_repr(
    tmp_path: Path,
):
    key = "not-like-a-key-5150"
    text = SERVER.replace(
        "import json\n", "import json, os\n\nKEY = os.environ['SHOP_PASS'].strip()\n", 1
    )
    text = text.replace('"There are', 'KEY + " There are')
    folder = await accepted(write_deck(tmp_path, text, environment=["SHOP_PASS"]), SHOP_PASS=key)
    assert key not in (folder / "mcp.lock").read_text()
    async with kit_of(folder, SHOP_PASS=f"{key}\n") as kit:
        reply = await kit.ask(QUESTION, kit.session("s"))
        assert key not in logged(reply) and "[secret]" in reply.text
        assert key not in repr(kit) + repr(kit.deck.tools)
    rewrite(folder, "for line in sys.stdin:", "raise SystemExit(KEY)\nfor line in sys.stdin:")
    with pytest.raises(BindError) as error:
        async with kit_of(folder, SHOP_PASS=key):
            pass
    assert key not in str(error.value) and "[secret]" in str(error.value)


@pytest.mark.req("K-1")
async def test_a_command_gets_no_other_variable_than_it_was_promised(tmp_path: Path):
    text = SERVER.replace(
        "import json\n",
        "import json, os, sys\n\nopen(sys.argv[-1] + '.env', 'w').write(' '.join(os.environ))\n",
        1,
    )
    folder = write_deck(tmp_path, text)
    deck = yaml.safe_load((folder / "deck.yaml").read_text())
    deck["mcp"]["till"] = {
        "command": [*deck["mcp"]["shop"]["command"], "till"],
        "environment": ["TILL_PASS"],
    }
    (folder / "deck.yaml").write_text(yaml.safe_dump(deck))
    told = {"TILL_PASS": "of-the-till", "OPENAI_API_KEY": "sk-of-somebody-else", "HOME": "/"}
    async with kit_of(await accepted(folder, **told), **told):
        pass
    allowed = {*ALWAYS, "LC_CTYPE", "PWD"}
    assert set((folder / "server.py.env").read_text().split()) <= allowed
    assert set((folder / "till.env").read_text().split()) <= {*allowed, "TILL_PASS"}


@pytest.mark.req("K-1")
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"OPENAI_API_KEY": "sk-1234567890"},
            "OPENAI_API_KEY belongs to https://api.openai.com/v1 and is not sent to ",
        ),
        (
            {"OPENAI_API_KEY": "sk-1234567890", "OPENAI_BASE_URL": "http://127.0.0.1:1"},
            "belongs to http://127.0.0.1:1 and",
        ),
        ({"OPENAI_API_KEY": " "}, "is to be told OPENAI_API_KEY, which is not set"),
    ],
)
async def test_a_well_known_key_is_not_sent_to_a_strangers_server(
    variables: dict[str, str], words: str, tmp_path: Path
):
    with over_http() as (url, headers), pytest.raises(BindError, match=words):
        await accepted(
            write_deck(tmp_path, url=url, headers={"x-key": "$OPENAI_API_KEY"}), **variables
        )
    assert headers == []


@pytest.mark.req("K-1")
@pytest.mark.parametrize("ending", ["__import__('os')._exit(1)", "return {'content': 'words'}"])
async def test_an_act_whose_server_broke_off_after_it_is_not_known_to_be_done_and_not_done_twice(
    ending: str, tmp_path: Path
):
    acting = f"open('acts', 'a').write('1'); {ending}"
    folder = await accepted(write_deck(tmp_path, inside(acting)))
    with (folder / "deck.yaml").open("a") as deck:
        deck.write("tool_limits: {shop.stock: {once: true}}\n")
    async with kit_of(folder) as kit:
        first = await kit.ask(QUESTION, kit.session("s"))
        again = await kit.ask("try again", kit.session("s"))
    assert (folder / "acts").read_text() == "1"
    for reply in (first, again):
        assert "Whether this was done is not known" in reply.text
