"""A command as a system: a process for each message, without a shell."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kit.bridges.http import answer_parts
from kit.bridges.part import Part, Question, Reported
from kit.core.errors import DataError
from kit.core.limits import read_json

_LAST_LINE = 300
"""Characters of what a command complained of."""


class CommandError(Exception):
    """A command that ended without an answer."""


@dataclass(frozen=True, slots=True)
class CommandBridge:
    """A program that reads one line of JSON, `{"message": ...}`, and prints its answer: text, or an
    object `{"text", "calls", "usage"}`."""

    words: tuple[str, ...]
    folder: Path
    """It runs there."""

    async def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        """Runs the program once; it is killed where nobody waits any more. Raises CommandError for
        an exit code that is not 0."""
        request = {"message": question.text}
        if question.prior_context:
            request["prior_context"] = question.prior_context
        process = await asyncio.create_subprocess_exec(
            *self.words,
            cwd=self.folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Its own children end with it.
            start_new_session=True,
        )
        line = json.dumps(request, ensure_ascii=False) + "\n"
        try:
            out, complaint = await process.communicate(line.encode())
        finally:
            if process.returncode is None:
                await _kill(process)
        if process.returncode:
            lines = complaint.decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise CommandError(f"exit code {process.returncode}: {lines[-1][:_LAST_LINE]}")
        text = out.decode(errors="replace").strip()
        if _is_reply(text):
            for part in answer_parts(text):
                yield part
        else:
            yield Reported(text)


def _is_reply(text: str) -> bool:
    """Whether a printed answer is an object with `text`, as a service sends it; all else is the answer itself."""
    try:
        value: object = read_json(text)
    except ValueError:
        return False
    return isinstance(value, dict) and "text" in value


async def _kill(process: asyncio.subprocess.Process) -> None:
    import os
    import signal

    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def command_bridge(words: Sequence[str], folder: Path) -> CommandBridge:
    """A bridge to a program. Raises DataError where there is none of that name."""
    program = words[0]
    # A relative path is one of the folder that the command runs in.
    where = str(folder / program) if "/" in program else program
    if shutil.which(where) is None:
        raise DataError(f"no program {program!r} that can be run; check its name and its rights")
    return CommandBridge((where, *words[1:]), folder)
