"""`kit ask`: one question to the deck, its answer as a story or as events; `kit resume`: a turn that waits goes on."""

import asyncio
import json
import sys
import uuid
from argparse import Namespace
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kit.cli.options import WIDEST, cap_of, taping
from kit.core.display.command import command
from kit.core.value import json_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kit.core.card import AgentCard
    from kit.runtime.turn import Reply, Turn
    from kit.service.client import EventStream, ServiceClient
    from kit.service.remote_turn import RemoteTurn
    from kit.settings import Settings

OF_THIS_PROCESS = ("pattern", "surface", "cap", "fault", "image", "cassette")
"""Options of `ask` that a service is not told."""

PLAYED = "played from a recording: no model and no tool was called now"


def add(commands: Any) -> None:
    """Adds the commands to a parser's."""
    ask = commands.add_parser(
        "ask", help="ask the deck one question; the answer streams with its steps"
    )
    ask.add_argument("message", help="the question; - reads it from standard input")
    ask.add_argument("--json", action="store_true", help="one event a line, the reply last")
    ask.add_argument(
        "--strict", action="store_true", help="end with 1 where any part failed or was left out"
    )
    ask.add_argument(
        "--session", help="conversation to go on with (default: cli; with a cassette a new one)"
    )
    ask.add_argument(
        "--pattern", help="how the turn is orchestrated, such as plan_execute (default: mediated)"
    )
    ask.add_argument(
        "--surface", help="which of the deck's topologies hold (default: the deck's own)"
    )
    ask.add_argument(
        "--cap",
        type=cap_of,
        metavar=f"1-{WIDEST}",
        help="most sub-agents one turn may call (default: the deck's)",
    )
    ask.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="AGENT=KIND",
        help="make a part fail, such as rewards=timeout; repeatable",
    )
    ask.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="FILE",
        help="a picture to send with it; repeatable",
    )
    taping(ask)
    ask.set_defaults(run=_ask)
    resume = commands.add_parser(
        "resume", help="let a turn go on that waits for an answer, or whose process died"
    )
    resume.add_argument(
        "turn", help="its id, as ask and the page Traces show it; or a plan's, plan_..."
    )
    answer = resume.add_mutually_exclusive_group()
    answer.add_argument(
        "--yes", dest="answer", action="store_true", default=None, help="yes to all that it asks"
    )
    answer.add_argument("--no", dest="answer", action="store_false", help="no to all that it asks")
    resume.add_argument("--json", action="store_true", help="one event a line, the reply last")
    resume.add_argument(
        "--strict", action="store_true", help="end with 1 where any part failed or was left out"
    )
    resume.set_defaults(run=_resume)


def _ask(arguments: Namespace) -> int:
    message = arguments.message
    if message == "-":
        message = sys.stdin.read()
    return _exit_code(asyncio.run(_ask_turn(message, arguments)), strict=arguments.strict)


async def _ask_turn(message: str, arguments: Namespace) -> "Reply":
    from kit.core.fault import parse_all
    from kit.core.fault_injection import inject_faults
    from kit.runtime.message import read_picture
    from kit.runtime.recording.cassette import cassette_at
    from kit.settings import Settings
    from kit.wire import open_kit

    settings = Settings.read()
    if settings.service_url is not None:
        return await _ask_service(settings, message, arguments)
    images = [read_picture(path) for path in arguments.image]
    cassette = cassette_at(arguments.cassette, arguments.mode, "ask", message)
    async with (
        open_kit(settings, faults=bool(arguments.fault), cassette=cassette) as kit,
        AsyncExitStack() as stack,
    ):
        if kit.deck.next_cards and cassette is None:
            # It brings the bench, which few decks need here.
            from kit.bench.shadow import shadow_judges

            await stack.enter_async_context(shadow_judges(kit))
        # A recording holds no memory of the turns before it, so it is played in a new session.
        usual = "cli" if cassette is None else uuid.uuid4().hex
        session = kit.session(arguments.session or usual)
        faults = parse_all(arguments.fault, kit.team.agents, kit.team.root)
        with inject_faults(faults) as injection:
            turn = kit.ask(
                message,
                session,
                arguments.pattern,
                arguments.cap,
                images=images,
                surface=arguments.surface,
            )
        if faults and not arguments.json:
            print("made to fail: " + ", ".join(arguments.fault), flush=True)
        model = kit.model
        is_replay = cassette is not None and cassette.mode == "replay"
        if is_replay:
            model += f", {PLAYED}"
        reply = await _follow(turn, model, arguments.json, kit.deck.cards, is_replay=is_replay)
        unmet: list[str] = []
        for text, fault in zip(arguments.fault, faults, strict=True):
            if fault not in injection.landed:
                unmet.append(text)
        if unmet:
            print(f"did not happen in this turn: {', '.join(unmet)}", file=sys.stderr)
        while reply.status == "paused" and cassette is None and _can_answer(reply, arguments):
            turn = kit.resume(reply.turn_id, _answers(reply))
            reply = await _follow(turn, kit.model, False, kit.deck.cards)
    return reply


def _can_answer(reply: "Reply", arguments: Namespace) -> bool:
    """Whether somebody sits at a keyboard who answers what a turn asks; else says in a line how it is answered."""
    if arguments.json:
        return False
    if sys.stdin.isatty():
        return True
    print(_answer_line(reply))
    return False


def _answer_line(reply: "Reply") -> str:
    return f"answer with: {command('resume', reply.turn_id, '--yes')} (or --no)"


async def _ask_service(settings: "Settings", message: str, arguments: Namespace) -> "Reply":
    """Asks the service that the settings name."""
    from kit.core.errors import SettingsError
    from kit.service.remote_turn import client_of

    for option in OF_THIS_PROCESS:
        if getattr(arguments, option):
            raise SettingsError(
                f"--{option} is for turns of this process, and KIT_SERVICE_URL has them run elsewhere: leave one out"
            )
    async with client_of(settings) as client:
        stream = client.stream(arguments.session or "cli", message)
        reply = await _follow_service(client, stream, arguments)
        while reply.status == "paused" and _can_answer(reply, arguments):
            stream = client.answer(reply.turn_id, _answers(reply))
            reply = await _follow_service(client, stream, arguments)
        return reply


async def _follow_service(
    client: "ServiceClient", stream: "EventStream", arguments: Namespace
) -> "Reply":
    from kit.service.remote_turn import RemoteTurn

    turn = await RemoteTurn.begin(client, stream)
    return await _follow(turn, client.url, arguments.json)


def _resume(arguments: Namespace) -> int:
    return _exit_code(asyncio.run(_resume_turn(arguments)), strict=arguments.strict)


def _exit_code(reply: "Reply", *, strict: bool) -> int:
    """Returns 0 for a turn that answered something, `strict` for one that answered all; 3 for one that waits."""
    if reply.status == "paused":
        return 3
    if reply.status != "ok" or (strict and not reply.parts.is_complete):
        return 1
    return 0


async def _resume_turn(arguments: Namespace) -> "Reply":
    from kit.service.remote_turn import client_of
    from kit.settings import Settings
    from kit.wire import open_kit

    settings = Settings.read()
    if settings.service_url is not None:
        async with client_of(settings) as client:
            if arguments.answer is None:
                stream = client.resume(arguments.turn)
            else:
                stream = client.answer(arguments.turn, arguments.answer)
            reply = await _follow_service(client, stream, arguments)
    else:
        async with open_kit(settings, faults=True) as kit:
            turn = kit.resume(arguments.turn, arguments.answer)
            reply = await _follow(turn, kit.model, arguments.json, kit.deck.cards)
    if reply.status == "paused" and not arguments.json:
        # A plan may ask again, and that is another question.
        print(_answer_line(reply))
    return reply


def _answers(reply: "Reply") -> dict[str, bool]:
    """Asks each question of a turn that waits; whatever does not begin with y is a no."""
    from kit.core.bodies.turn import ApprovalAsked

    answers: dict[str, bool] = {}
    for event in reply.events:
        if isinstance(event.body, ApprovalAsked):
            answer = input(f"{event.body.question} [y/N] ")
            answers[event.body.key] = answer.strip().lower().startswith("y")
    return answers


async def _follow(
    turn: "Turn | RemoteTurn",
    model: str,
    as_json: bool,
    cards: "Mapping[str, AgentCard]" = MappingProxyType({}),
    *,
    is_replay: bool = False,
) -> "Reply":
    """Prints a turn as it happens, as a story or as events; why something failed goes to stderr.

    `model`: what answers, in words; `cards`: those of the deck, where it is at hand; `is_replay`: it is played from a
    recording.
    """
    from kit.cli.story import Story, reply_line
    from kit.core.language.controls import without_controls

    story = Story(sys.stdout, model, cards)
    try:
        async for event in turn:
            if as_json:
                print(json_of(event), flush=True)
            else:
                story.tell(event)
        reply = await turn
    except asyncio.CancelledError:
        # That is Ctrl-C: asyncio.run cancels the command once, and waits for it.
        await _stop(turn)
        raise
    if as_json:
        print(json.dumps({**reply_line(reply), "replayed": is_replay}), flush=True)
    # For the developer; the story is the user's.
    for reason in () if as_json else _reasons(reply):
        print(without_controls(reason), file=sys.stderr)
    return reply


async def _stop(turn: "Turn | RemoteTurn") -> None:
    """Stops a turn for its user, and prints the line that lets its plan go on."""
    from kit.core.bodies.turn import PlanTaken

    turn.cancel()
    reply = await turn
    for event in reply.events:
        if isinstance(event.body, PlanTaken) and reply.plan is None:
            line = command("resume", event.body.plan_id)
            print(f"the plan is stopped; it goes on with: {line}", file=sys.stderr)


def _reasons(reply: "Reply") -> "Iterator[str]":
    """Why tools failed, and of a turn that is a plan, why the plan or the turn did."""
    from kit.core.bodies.call import CallFailure, ToolEnded
    from kit.core.bodies.turn import Completed, PlanTaken

    is_plan = False
    for event in reply.events:
        match event.body:
            case ToolEnded(failure=CallFailure() as failure) as body if failure.kind != "paused":
                yield f"tool {body.tool!r} of {body.agent}: {body.error}"
            case PlanTaken():
                is_plan = True
            case Completed(status="failed", error=str(error)) if is_plan:
                yield f"turn: {error}"
            case _:
                pass
    for outcome in reply.outcomes:
        if is_plan and outcome.kind == "failure":
            yield f"plan: {outcome.reason}: {outcome.detail}"
