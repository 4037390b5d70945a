"""write_temp and read_lines: data that is too long to read at once, in a folder that its task alone
has and that ends with it."""

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.core.errors import BindError
from kit.tools.enricher import fit_arguments, structured
from kit.tools.task_memory import Task, current_task
from kit.tools.tool import UNAVAILABLE, Toolbox, ToolResult, tool_context
from kit.tools.tool_factory import ToolSetup, tool_factory

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

WRITE = "write_temp"
READ = "read_lines"
HOUR = 3600.0
"""Seconds after which the folder of a task goes that nobody wiped: its process died."""
MOST_LINES = 200
MOST_CHARACTERS = 16_000
"""What one reading gives at most: a file of JSON is often one line."""
_FILE = re.compile(r"tmp_\d{1,6}")


@dataclass(frozen=True, slots=True)
class TempFiles:
    """Files of tasks under one root; a task reaches its own and no others."""

    root: Path

    def folder(self, task: Task) -> Path:
        """The folder of a task, the same in every process."""
        name = json.dumps(
            [task.principal.tenant_id, task.principal.user_id, task.session_id, task.id]
        )
        return self.root / hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def write(self, task: Task, text: str) -> str:
        """Writes a file and returns its id. Raises OSError."""
        folder = self.folder(task)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = sum(1 for _ in folder.iterdir())
        while True:
            number += 1
            # FileExistsError: another call of the same task writes at the same time.
            with suppress(FileExistsError):
                with (folder / f"tmp_{number}").open(
                    "x", encoding="utf-8", errors="replace", newline=""
                ) as file:
                    file.write(text)
                return f"tmp_{number}"

    def path(self, task: Task, file_id: str) -> Path | None:
        """Where a file of this task is; None for the id of no file of its own."""
        path = self.folder(task) / file_id
        if _FILE.fullmatch(file_id) and path.is_file():
            return path
        return None

    def lines(self, task: Task, file_id: str, start: int, count: int) -> list[str] | None:
        """Lines from `start` on, from 0, as far as they are short enough; the last may be cut. None
        where there is no file."""
        path = self.path(task, file_id)
        if path is None:
            return None
        lines = list[str]()
        room = MOST_CHARACTERS
        with path.open(encoding="utf-8") as file:
            for line in islice(file, max(0, start), max(0, start) + min(max(0, count), MOST_LINES)):
                if room <= 0:
                    break
                text = line.rstrip("\n")
                if len(text) > room:
                    lines.append(f"{text[:room]} [cut: this line has {len(text):,} characters]")
                    break
                lines.append(text)
                room -= len(text) + 1
        return lines

    def wipe(self, task: Task) -> None:
        """Removes what a task has written, here or in a process before this one."""
        shutil.rmtree(self.folder(task), ignore_errors=True)

    def sweep(self, now: float) -> int:
        """Removes the folders that nothing was written to for an hour; returns how many."""
        late = [item for item in self.root.iterdir() if now - item.stat().st_mtime > HOUR]
        for folder in late:
            shutil.rmtree(folder, ignore_errors=True)
        return len(late)


def open_temp_files() -> TempFiles:
    """The files of this user's tasks, in the system's folder for such. Raises BindError where
    somebody else can reach them."""
    user = os.getuid()
    root = Path(tempfile.gettempdir()) / f"kit-tasks-{user}"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    # lstat: somebody else may have put a link there, into a folder of their own.
    info = root.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != user or info.st_mode & 0o077:
        raise BindError(f"{root} is not a folder that this user alone can enter; remove it")
    return TempFiles(root)


def write_tool(files: TempFiles) -> "BaseTool":
    """write_temp, for a card."""

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        data = arguments.get("data", "")
        task = current_task()
        tool_context().at_end(lambda: files.wipe(task))
        # Models hand in JSON as it is; an item a line can be read by lines.
        if not isinstance(data, str):
            data = json.dumps(data, ensure_ascii=False, indent=0)
        try:
            file_id = files.write(task, data)
        except OSError as error:
            return UNAVAILABLE, ToolResult(text=UNAVAILABLE, fault="unavailable", detail=str(error))
        return file_id, ToolResult(text=file_id)

    asks = {"data": {"type": "string", "description": "The text to put away."}}
    description = "Put a long text into a file for this task. Returns the file's id."
    return structured(WRITE, description, asks, ("data",), call)


def read_tool(files: TempFiles) -> "BaseTool":
    """read_lines, for a card."""

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        values = fit_arguments(arguments, asks)
        file_id = values.get("file_id", "")
        lines = files.lines(current_task(), file_id, values.get("start", 0), values.get("n", 20))
        if lines is None:
            text = "There is no such file."
        else:
            text = "\n".join(lines) or "There are no more lines."
        return text, ToolResult(text=text)

    asks = {
        "file_id": {"type": "string", "description": "The id that write_temp returned."},
        "start": {"type": "integer", "description": "The first line, from 0."},
        "n": {"type": "integer", "description": f"How many lines, at most {MOST_LINES}."},
    }
    return structured(READ, "Read some lines of a file of this task.", asks, ("file_id",), call)


@tool_factory(WRITE, READ)
@asynccontextmanager
async def TOOLS(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
    """What deck.yaml names as `kit.tools.temp_files:TOOLS`."""
    files = open_temp_files()
    files.sweep(time.time())
    yield {WRITE: write_tool(files), READ: read_tool(files)}
