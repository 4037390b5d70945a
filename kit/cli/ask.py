"""`kit ask`: one question to the deck, its answer as a story or as events."""

import asyncio
import json
import sys
import uuid
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from kit.cli.cassette_options import taping

if TYPE_CHECKING:
    from kit.runtime.turn import Reply


def add(commands: Any) -> None:
    """Adds the commands to a parser's."""
    ask = commands.add_parser("ask", help="ask the deck one question; the answer streams with its steps")
    ask.add_argument("message", help="the question; - reads it from standard input")
    ask.add_argument("--json", action="store_true", help="one event a line, the reply last")
    ask.add_argument("--session", help="conversation to go on with (default: cli; with a cassette a new one)")
    ask.add_argument("--pattern", help="how the turn is orchestrated (default: mediated)")
    ask.add_argument("--surface", help="which of the deck's topologies hold (default: the deck's own)")
    ask.add_argument("--cap", type=int, help="most sub-agents one turn may call (default: the deck's)")
    ask.add_argument(
        "--fault", action="append", default=[], metavar="AGENT=KIND", help="make a part fail, such as rewards=timeout; repeatable"
    )
    ask.add_argument("--image", action="append", default=[], metavar="FILE", help="a picture to send with it; repeatable")
    taping(ask)
    ask.set_defaults(run=_ask)


def _ask(arguments: Namespace) -> int:
    message = sys.stdin.read() if arguments.message == "-" else arguments.message
    return 0 if asyncio.run(_ask_turn(message, arguments)).status == "ok" else 1


async def _ask_turn(message: str, arguments: Namespace) -> "Reply":
    from kit.cli.story import Story, reply_line
    from kit.runtime.message import read_picture
    from kit.runtime.recording.cassette import cassette_at
    from kit.wire import open_kit

    images = [read_picture(path) for path in arguments.image]
    cassette = cassette_at(arguments.cassette, arguments.mode, "ask", message)
    async with open_kit(faults=bool(arguments.fault), cassette=cassette) as kit:
        session = kit.session(arguments.session or ("cli" if cassette is None else uuid.uuid4().hex))
        turn = kit.ask(message, session, arguments.pattern, arguments.cap, arguments.fault, images, arguments.surface)
        if arguments.fault and not arguments.json:
            print("made to fail: " + ", ".join(arguments.fault), flush=True)
        story = Story(sys.stdout, kit.model)
        async for event in turn:
            if arguments.json:
                print(event.model_dump_json(), flush=True)
            else:
                story.tell(event)
        reply = await turn
    if arguments.json:
        print(json.dumps(reply_line(reply)), flush=True)
    return reply
