"""A result that is too long to read goes into a file of its task: the model reads its beginning, a
script of its own the rest."""

import asyncio

from kit.tools.task_memory import Task
from kit.tools.temp_files import TempFiles
from kit.tools.tool import UNAVAILABLE, ToolResult

SAMPLE = 20
"""Lines of it that the model reads."""


def write_sample(text: str, task: Task, files: TempFiles) -> tuple[str, str]:
    """Writes a text into a file of the task; returns the file's id and the lines it begins with. Raises OSError."""
    file_id = files.write(task, text)
    return file_id, "\n".join(files.lines(task, file_id, 0, SAMPLE) or ())


def tell_file(subject: str, file_id: str, sample: str) -> str:
    """Words for a model where a text is that it cannot read whole, and how that begins."""
    head = f"{subject}, too many to read. All of it is in the file {file_id}, which begins:"
    return f"{head}\n{sample}\n\nGet what you need of it with exec_python, file_id {file_id}."


async def put_away(result: ToolResult, task: Task, files: TempFiles) -> ToolResult:
    """Returns the result with a sample in the place of its text, which a file has now; a fault
    where none can be made."""
    size = f"{len(result.text):,} characters"
    try:
        file_id, sample = await asyncio.to_thread(write_sample, result.text, task, files)
    except OSError as error:
        return ToolResult(text=UNAVAILABLE, fault="unavailable", detail=f"its {size}: {error}")
    return result.replace(text=tell_file(f"This result has {size}", file_id, sample))
