"""Measures what the HTTP API costs a turn: CPU of the server's process over that of the same turn without it.

    python benchmarks/api_cost.py [PAIRS]

A server of its own answers over a socket; the client is another process, so that its own work does not count.
In each pair the same process answers so many turns over HTTP, and then plays as many of the same by itself: one
sub-agent is asked, and answers at once. The median of the pairs is given with a bootstrap interval at 95 %.
"""

import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from kit import Kit, Settings, open_kit
from kit.compose.deck import Deck
from kit.core.card import AgentCard
from kit.models.scripted import Line, ScriptedModel
from kit.service.api import create_app
from kit.service.limits import Limits
from kit.service.service import Service
from kit.worlds.service.serve import serving

QUESTION = "which drink?"
WHO = {"X-Tenant-Id": "acme", "X-User-Id": "alice"}
TURNS = 40
"""Turns of each half of a pair."""


def lead(messages: list[Any]) -> Line:
    """Asks the one sub-agent, and passes on what it said."""
    if messages[-1].type == "tool":
        return Line("It is tea.")
    return Line("Let me look.", calls=[("ask_desk", {"query": QUESTION, "intent_count": 1})])


async def serve(folder: Path) -> None:
    """Answers, until its standard input ends, and tells of its own CPU."""
    cards = [
        AgentCard(id="lead", description="Leads.", model="offline", sub_agents=("desk",)),
        AgentCard(id="desk", description="Looks things up.", model="offline"),
    ]
    models = {"lead": ScriptedModel(lead), "desk": ScriptedModel(lambda _: Line("It is tea."))}
    deck = Deck.of(cards, required_blocks=())
    settings = Settings(store=str(folder / "kit.db"), pace=0.0, model="offline")
    async with open_kit(settings, deck=deck, models=models) as kit:
        limits = Limits(turns_at_once=1_000, turns_a_minute=1_000_000)
        app = create_app(Service(kit, limits, "mediated"))

        @app.get("/cpu")
        async def cpu() -> float:
            return time.process_time()

        @app.post("/own/{turns}")
        async def own(turns: int) -> float:
            began = time.process_time()
            for number in range(turns):
                await ask(kit, number)
            return time.process_time() - began

        async with serving(app) as url:
            gc.freeze()
            print(url, flush=True)
            await asyncio.to_thread(sys.stdin.read)


async def ask(kit: Kit, number: int) -> None:
    session = f"own-{time.monotonic_ns()}-{number}"
    await kit.ask(QUESTION, kit.session(session, "acme", "alice"), "mediated")


def over_http(http: httpx.Client, *, stream: bool) -> float:
    """Returns the CPU of the server while it answers as many turns."""
    began: float = http.get("/cpu").json()
    for number in range(TURNS):
        body = {
            "tenant_id": "acme",
            "user_id": "alice",
            "session_id": f"api-{time.monotonic_ns()}-{number}",
            "message": QUESTION,
            "stream": stream,
        }
        http.post("/agent/run", json=body, headers=WHO).raise_for_status()
    ended: float = http.get("/cpu").json()
    return ended - began


def measure(http: httpx.Client, pairs: int, *, stream: bool) -> None:
    costs: list[float] = []
    own: list[float] = []
    for _ in range(pairs):
        api = over_http(http, stream=stream)
        alone: float = http.post(f"/own/{TURNS}").json()
        costs.append((api - alone) / TURNS * 1e3)
        own.append(alone / TURNS * 1e3)
    draws = np.random.default_rng(1).choice(costs, (2_000, len(costs)))
    low, high = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    mode = "streamed" if stream else "whole   "
    print(
        f"{mode}: the API costs a turn {statistics.median(costs):.2f} ms CPU [{low:.2f}, {high:.2f}], "
        f"the turn itself {statistics.median(own):.2f} ms; {pairs} pairs of {TURNS} turns"
    )


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, __file__, "--serve", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server,
    ):
        assert server.stdin is not None and server.stdout is not None
        url = server.stdout.readline().strip()
        with httpx.Client(base_url=url, timeout=120) as http:
            for stream in (False, True):
                over_http(http, stream=stream)
                measure(http, pairs, stream=stream)
        server.stdin.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(Path(sys.argv[2])))
    else:
        main()
