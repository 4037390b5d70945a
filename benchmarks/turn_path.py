"""Counts how much of the kit a reader has to follow to understand one plain turn.

    python benchmarks/turn_path.py [--names]

The second turn of a session is played: one sub-agent, one tool, scripted models, the default guards, a
store in memory. Every Python function of the kit that is entered is noted with its file, on every
thread; the example worlds do not count. `--names` lists them, file by file, with how often each was entered.
"""

import argparse
import asyncio
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from kit import AgentCard, Deck, Line, ScriptedModel, Settings, open_kit
from kit.compose.parts import DeckSettings

KIT = Path(__file__).resolve().parents[1] / "kit"
WORLDS = KIT / "worlds"


def opening_hours(weekday: str) -> str:
    """Says when the shop is open on a weekday."""
    return f"On {weekday} the shop is open from nine to five."


def deck() -> Deck:
    shop = AgentCard(
        id="shop", description="Knows the opening hours.", model="offline", tools=("opening_hours",)
    )
    orchestrator = AgentCard(
        id="orchestrator", description="Talks with people.", model="offline", sub_agents=("shop",)
    )
    return Deck.of(
        [orchestrator, shop], settings=DeckSettings(orchestrator="orchestrator"), required_blocks=[]
    )


def talks(messages: list[BaseMessage]) -> Line:
    """The orchestrator: asks the shop, then repeats what it said."""
    if isinstance(messages[-1], ToolMessage):
        return Line(str(messages[-1].content))
    query = str(messages[-1].content)
    return Line("Let me look.", calls=[("ask_shop", {"query": query, "intent_count": 1})])


def looks_up(messages: list[BaseMessage]) -> Line:
    """The shop: calls its tool, then says what the tool found."""
    if isinstance(messages[-1], ToolMessage):
        return Line(str(messages[-1].content))
    return Line(calls=[("opening_hours", {"weekday": "Monday"})])


class FunctionCounter:
    """Notes each function of the kit that is entered while it listens."""

    def __init__(self) -> None:
        self.entered: Counter[tuple[str, str]] = Counter()
        self.listening = False

    def install(self) -> None:
        """Hooks into this thread and into those that are started later, such as the one that stores."""
        threading.setprofile(self.on_event)
        sys.setprofile(self.on_event)

    def on_event(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.listening:
            return
        path = Path(frame.f_code.co_filename)
        if KIT in path.parents and WORLDS not in path.parents:
            function = f"{frame.f_code.co_qualname}:{frame.f_code.co_firstlineno}"
            self.entered[path.relative_to(KIT).as_posix(), function] += 1


async def second_turn(counter: FunctionCounter) -> None:
    counter.install()
    models = {"orchestrator": ScriptedModel(talks), "shop": ScriptedModel(looks_up)}
    settings = Settings.read().with_(store=":memory:", pace=0.0)
    async with open_kit(settings, deck=deck(), models=models, tools=[opening_hours]) as kit:
        session = kit.session("path")
        await kit.ask("When do you open on Friday?", session)
        counter.listening = True
        reply = await kit.ask("And when on Monday?", session)
        counter.listening = False
    if "from nine to five" not in reply.text:
        raise SystemExit(f"the turn did not go as planned: {reply.text}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", action="store_true", help="list the functions, file by file")
    wanted = parser.parse_args()
    counter = FunctionCounter()
    asyncio.run(second_turn(counter))
    files = sorted({path for path, _ in counter.entered})
    if wanted.names:
        for path in files:
            functions = [
                (name, count) for (file, name), count in counter.entered.items() if file == path
            ]
            print(f"{path}: {len(functions)}")
            for name, count in functions:
                print(f"    {name.partition(':')[0]} {count}")
    entries = sum(counter.entered.values())
    print(f"{len(files)} files, {len(counter.entered)} functions, {entries} entries")


if __name__ == "__main__":
    main()
