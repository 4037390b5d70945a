"""Measures what many readers of long streams cost the API in memory, and whether each is told all of it once.

    python benchmarks/api_streams.py [READERS]

A server of its own runs a few long turns. Its resident memory is read before anybody follows them, and while so many
do: half of them never read a byte, of the others a third drops every seventh event and joins again. The same
is done again once the turns have ended, when the streams come out of the store.
"""

import asyncio
import contextlib
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from kit import Principal, Settings, open_kit
from kit.compose.deck import Deck
from kit.compose.parts import DeckSettings
from kit.core.card import AgentCard, Policy
from kit.models.scripted import Line, ScriptedModel
from kit.service.api import create_app
from kit.service.client import ServiceClient
from kit.service.limits import Limits
from kit.service.service import Service
from kit.worlds.service.serve import serving

DESKS = tuple(f"desk-{number}" for number in range(8))
TURNS = 4
WAIT = 5.0
"""Seconds before a turn says anything, so that all its readers are there."""
WHO = Principal(tenant_id="acme", user_id="alice")
LONG = "a long and quiet sentence about tea and nothing else, " * 1_800


def lead(messages: list[Any]) -> Line:
    if messages[-1].type == "tool":
        return Line("It is tea.")
    arguments = {"query": "which drink?", "intent_count": len(DESKS)}
    return Line("Let me look.", calls=[(f"ask_{desk}", arguments) for desk in DESKS])


async def serve(folder: Path) -> None:
    """Answers until its standard input ends."""
    cards = [AgentCard(id="lead", description="Leads.", model="offline", sub_agents=DESKS)]
    models = {"lead": ScriptedModel(lead)}
    for desk in DESKS:
        cards.append(
            AgentCard(
                id=desk,
                description=f"Is {desk}.",
                model="offline",
                policy=Policy(tokens_out=60_000, tokens_in=1_000_000),
            )
        )
        models[desk] = ScriptedModel(lambda _: Line(LONG, delay=WAIT))
    deck = Deck.of(
        cards, settings=DeckSettings(orchestrator="lead", cap=len(DESKS), required_blocks=())
    )
    settings = Settings(store=str(folder / "kit.db"), pace=0.0, model="offline")
    async with open_kit(settings, deck=deck, models=models) as kit:
        limits = Limits(turns_at_once=1_000, turns_a_minute=1_000_000)
        async with serving(create_app(Service(kit, limits, "mediated"))) as url:
            print(url, flush=True)
            await asyncio.to_thread(sys.stdin.read)


async def read(client: ServiceClient, turn_id: str, *, drops: bool) -> list[int]:
    """Returns the numbers of the events of a turn as they were read."""
    numbers: list[int] = []
    stream = client.follow(turn_id)
    while stream.result is None:
        # Whoever begins to read anew goes on after the last event.
        async with contextlib.aclosing(aiter(stream)) as events:
            async for event in events:
                numbers.append(event.seq)
                if drops and len(numbers) % 7 == 0:
                    break
    return numbers


async def ignore(url: str, turn_id: str) -> asyncio.StreamWriter:
    """Asks for a stream and never reads of it."""
    host, _, port = url.removeprefix("http://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port), limit=1)
    identity = f"X-Tenant-Id: {WHO.tenant_id}\r\nX-User-Id: {WHO.user_id}\r\n"
    writer.write(
        f"GET /agent/turns/{turn_id}/events HTTP/1.1\r\nHost: {host}\r\n{identity}\r\n".encode()
    )
    return writer


async def follow(url: str, server: psutil.Process, turns: list[str], readers: int) -> None:
    """Follows the turns with so many readers, and prints what that took."""
    before = server.memory_info().rss
    peak = before
    turn_of = itertools.cycle(turns)
    async with ServiceClient(url, WHO) as client:
        writers = [await ignore(url, next(turn_of)) for _ in range(readers // 2)]
        began = time.monotonic()
        running: list[asyncio.Task[list[int]]] = []
        for number in range(readers - len(writers)):
            drops = number % 3 == 0
            running.append(asyncio.create_task(read(client, next(turn_of), drops=drops)))
        while not all(task.done() for task in running):
            await asyncio.sleep(0.05)
            peak = max(peak, server.memory_info().rss)
        settled = server.memory_info().rss
        seconds = time.monotonic() - began
        wrong = 0
        longest = max(len(task.result()) for task in running)
        for task in running:
            numbers = task.result()
            # Kinds for history alone are told to nobody, so a number may be missing; none comes twice.
            in_order = numbers == sorted(set(numbers))
            if not in_order or len(numbers) != longest:
                wrong += 1
        for writer in writers:
            writer.close()
    sizes = [f"{size / 2**20:.0f} MiB" for size in (before, peak, settled)]
    print(
        f"{readers} readers, {len(writers)} of whom never read, in {seconds:.1f} s: the server had {sizes[0]}, "
        f"at most {sizes[1]}, and {sizes[2]} with those who never read alone; "
        f"{longest} events each, {wrong} readers missed or repeated one"
    )


async def measure(url: str, server: psutil.Process, readers: int) -> None:
    async with ServiceClient(url, WHO) as client:
        streams = [client.stream(f"s{number}", "which drink?") for number in range(TURNS)]
        reading = [aiter(stream) for stream in streams]
        turns = [(await anext(events)).turn_id for events in reading]
        await follow(url, server, turns, readers)
        sizes: list[int] = []
        for events in reading:
            sizes.append(sum([len(event.model_dump_json()) async for event in events]))
        print(f"{max(sizes) / 1e6:.2f} MB a stream; they have ended, and are read once more")
        await follow(url, server, turns, readers)


def main() -> None:
    readers = int(sys.argv[1]) if len(sys.argv) > 1 else 200
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
        asyncio.run(measure(url, psutil.Process(server.pid), readers))
        server.stdin.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(Path(sys.argv[2])))
    else:
        main()
