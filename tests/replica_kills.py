"""Turns over two replicas of the API and one PostgreSQL, which are killed in turn, while each request comes again
until it is answered.

`python -m tests.replica_kills 100 20` asks for 100 turns and kills a replica 20 times. It ends with 1 where a turn that
was acknowledged is lost, or where one was made twice.
"""

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from kit.core.context import OPERATOR, Principal
from kit.stores.opening import open_store
from tests.postgres import Server

ANN = Principal(tenant_id="acme", user_id="u-001")
HEADERS = {"X-Tenant-Id": ANN.tenant_id, "X-User-Id": ANN.user_id}


class Replica:
    """One `kit serve`, which may be killed and started again."""

    def __init__(self, store: str):
        self._environment = {**os.environ, "KIT_STORE": store, "KIT_MODEL": "offline"}
        self._environment["KIT_PACE"] = "0.2"
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it, and returns once it answers."""
        command = [sys.executable, "-m", "kit", "serve", "--port", "0"]
        command += ["--turns-at-once", "1000", "--turns-a-minute", "100000"]
        self._process = subprocess.Popen(
            command, env=self._environment, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if line.startswith("answering on "):
                self.url = line.split()[-1]
                return
        raise AssertionError("the replica does not start")

    def kill(self) -> None:
        """Kills it with -9."""
        assert self._process is not None and self._process.stderr is not None
        self.url = ""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process.stderr.close()


@dataclass(frozen=True)
class Result:
    """What became of the turns."""

    asked: int
    acknowledged: int
    lost: int
    twice: int
    unanswered: int
    again: int
    """Requests that had to come again."""
    seconds: float


class Asker:
    """Asks for turns at replicas until each is answered, and notes what was acknowledged."""

    def __init__(self, replicas: list[Replica], http: httpx.AsyncClient, draws: random.Random):
        self.acknowledged: dict[int, str] = {}
        """Number of a turn -> the id that a replica has given it."""
        self.answers: set[int] = set()
        self.again: set[int] = set()
        self._replicas = replicas
        self._http = http
        self._draws = draws

    async def ask(self, number: int, seconds: float) -> None:
        """Asks for one turn within so many seconds, and again until it is answered."""
        await asyncio.sleep(self._draws.uniform(0, seconds))
        while number not in self.answers:
            try:
                await self._try(number)
            except (httpx.HTTPError, httpx.InvalidURL):
                self.again.add(number)
                await asyncio.sleep(0.3)

    async def _try(self, number: int) -> None:
        body = {"tenant_id": ANN.tenant_id, "user_id": ANN.user_id, "session_id": f"s{number}"}
        message = f"how many points do I have, and what is new? ({number})"
        headers = {**HEADERS, "Idempotency-Key": f"k-{number}"}
        async with self._http.stream(
            "POST",
            f"{self._draws.choice(self._replicas).url}/agent/run",
            json={**body, "message": message, "stream": True},
            headers=headers,
        ) as response:
            response.raise_for_status()
            self.acknowledged[number] = response.headers["x-turn-id"]
            text = (await response.aread()).decode()
        if '"status":"ok"' not in text.rsplit("event: result", 1)[-1]:
            raise httpx.ReadError("the turn was interrupted")
        self.answers.add(number)


async def play(store: str, turns: int, kills: int, seed: int = 1) -> Result:
    """Asks for turns at two replicas that are killed in turn."""
    draws = random.Random(seed)
    replicas = [Replica(store), Replica(store)]
    for replica in replicas:
        await asyncio.to_thread(replica.start)
    began = time.monotonic()
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as http:
        asker = Asker(replicas, http, draws)
        asking = [asyncio.create_task(asker.ask(number, 1.5 * kills)) for number in range(turns)]
        for number in range(kills):
            await asyncio.sleep(draws.uniform(0.5, 1.5))
            replicas[number % 2].kill()
            await asyncio.to_thread(replicas[number % 2].start)
        _, unanswered = await asyncio.wait(asking, timeout=240)
        for task in unanswered:
            task.cancel()
    for replica in replicas:
        replica.kill()
    opened = open_store(store)
    lost = 0
    for turn_id in asker.acknowledged.values():
        record = opened.turn(turn_id, OPERATOR)
        if record is None or record.status != "ok":
            lost += 1
    by_session = Counter(turn.session_id for turn in opened.turns(limit=10 * turns))
    opened.close()
    return Result(
        asked=turns,
        acknowledged=len(asker.acknowledged),
        lost=lost,
        twice=sum(count > 1 for count in by_session.values()),
        unanswered=len(unanswered),
        again=len(asker.again),
        seconds=time.monotonic() - began,
    )


@asynccontextmanager
async def postgres() -> AsyncGenerator[str]:
    """The URL of an empty database of a server that ends with the block."""
    with tempfile.TemporaryDirectory() as name:
        server = Server(Path(name))
        server.make()
        try:
            yield server.new_url()
        finally:
            server.remove()


async def main() -> int:
    """Plays what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("turns", type=int)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    async with postgres() as url:
        result = await play(url, arguments.turns, arguments.kills, arguments.seed)
    print(result)
    return 1 if result.lost or result.twice or result.unanswered else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
