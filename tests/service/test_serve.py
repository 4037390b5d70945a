"""`kit serve` as a process of its own, and the document that describes what it answers."""

import json
import re
import shlex
import socket
import time
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx
import pytest

from kit.service.api import create_app
from kit.stores.sqlite import SqliteStore
from tests.cli.test_cli import refused, run, type_command
from tests.effort import allowance
from tests.forks import started
from tests.service.servers import ACME, body

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


@pytest.mark.req("AS-22")
def test_the_committed_document_is_that_of_the_app() -> None:
    committed = json.loads(DOCUMENT.read_text())
    assert committed == create_app().openapi(), "python -m kit serve --openapi > docs/openapi.json"


def address_of(process: BaseProcess, log: Path) -> str:
    """Where a server that was just started answers."""
    found = None
    while found is None:
        assert process.is_alive()
        time.sleep(0.02)
        found = re.search(r"answering on (http://\S+)\n", log.read_text() if log.exists() else "")
    return found[1]


@pytest.mark.realtime
@pytest.mark.req("AS-15", "AS-24")
def test_a_server_answers_once_it_is_ready_and_ends_in_order(tmp_path: Path) -> None:
    environment = {"KIT_MODEL": "offline", "KIT_STORE": str(tmp_path / "kit.db"), "KIT_PACE": "0.3"}
    environment["KIT_DECK"] = "cards/gifts"
    question = "how many points do I have"
    process = started(type_command, ("serve", "--port", "0"), environment, tmp_path)
    try:
        url = address_of(process, tmp_path / "stderr")
        with httpx.Client(base_url=url, timeout=120) as http:
            assert http.get("/ready").json() == {"status": "ready"}
            reply = http.post("/agent/run", json=body(question, ACME), headers=ACME).json()
            assert reply["status"] == "ok" and reply["plan_id"] is None
        # The command line asks there in place of here.
        who = {"KIT_SERVICE_URL": url, "KIT_TENANT": "acme", "KIT_USER": "alice"}
        elsewhere = {**who, "KIT_STORE": str(tmp_path / "none.db"), "KIT_MODEL": "offline"}
        asked = run("ask", "--json", question, **elsewhere)
        assert asked.returncode == 0, asked.stderr
        last = json.loads(asked.stdout.splitlines()[-1])
        assert (last["kind"], last["text"]) == ("reply", reply["response"])
        assert not (tmp_path / "none.db").exists()
        # The line that it prints below a question answers that question there.
        asked = run("ask", "redeem 500 points for a gift card", **who)
        line = asked.stdout.partition("answer with: ")[2].splitlines()[0]
        assert asked.returncode == 3 and line.endswith("--yes (or --no)")
        command = shlex.split(line.removesuffix(" (or --no)"))
        answered = run(*command[command.index("resume") :], **who)
        assert answered.returncode == 0 and "500 points were redeemed" in answered.stdout
        # A turn whose reader has gone, with its first words said, is given the time to end as well.
        content = body(question, ACME, stream=True)
        with httpx.stream("POST", f"{url}/agent/run", json=content, headers=ACME) as stream:
            next(stream.iter_lines())
        began = time.monotonic()
        process.terminate()
        process.join(30)
        assert process.exitcode == 0 and time.monotonic() - began < allowance(15)
    finally:
        process.kill()
    with closing(SqliteStore(tmp_path / "kit.db")) as store:
        assert [turn.status for turn in store.turns()] == ["ok"] * 4


@pytest.mark.realtime
def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused(run("serve", "--port", str(taken.getsockname()[1])), "Address already in use")
