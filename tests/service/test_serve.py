"""`kit serve` as a process of its own, and the document that describes what it answers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from kit.service.api import create_app
from kit.settings import HOME
from kit.stores.sqlite import SqliteStore
from tests.cli.test_cli import refused, run
from tests.service.servers import ACME, body

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


@pytest.mark.req("AS-22")
def test_the_committed_document_is_that_of_the_app() -> None:
    committed = json.loads(DOCUMENT.read_text())
    assert committed == create_app().openapi(), "python -m kit serve --openapi > docs/openapi.json"


@pytest.mark.realtime
@pytest.mark.req("AS-15", "AS-24")
def test_a_server_answers_once_it_is_ready_and_ends_in_order(tmp_path: Path) -> None:
    environment = {**os.environ, "KIT_MODEL": "offline", "KIT_PACE": "0"}
    environment |= {"KIT_STORE": str(tmp_path / "kit.db"), "KIT_DECK": "cards/consumer"}
    command = [sys.executable, "-m", "kit", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=HOME, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        found = None
        for line in process.stderr:
            found = re.search(r"answering on (http://\S+)", line)
            if found:
                break
        assert found is not None
        with httpx.Client(base_url=found[1], timeout=30) as http:
            assert http.get("/ready").json() == {"status": "ready"}
            content = body("find coffee deals", ACME)
            reply = http.post("/agent/run", json=content, headers=ACME).json()
            assert reply["status"] == "ok" and reply["plan_id"] is None
        # The command line asks there in place of here.
        who = {"KIT_SERVICE_URL": found[1], "KIT_TENANT": "acme", "KIT_USER": "alice"}
        elsewhere = {**who, "KIT_STORE": str(tmp_path / "none.db"), "KIT_MODEL": "offline"}
        asked = run("ask", "--json", "find coffee deals", **elsewhere)
        assert asked.returncode == 0, asked.stderr
        last = json.loads(asked.stdout.splitlines()[-1])
        assert (last["kind"], last["text"]) == ("reply", reply["response"])
        assert not (tmp_path / "none.db").exists()
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0 and time.monotonic() - began < 15
    with closing(SqliteStore(tmp_path / "kit.db")) as store:
        assert [turn.status for turn in store.turns()] == ["ok", "ok"]


@pytest.mark.realtime
def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused(run("serve", "--port", str(taken.getsockname()[1])), "Address already in use")
