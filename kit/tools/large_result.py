"""A result that is too long to read goes into a file of its task: the model reads its beginning, a script of its own the rest."""

import asyncio

from kit.tools.task_memory import Task
from kit.tools.temp_files import TempFiles
from kit.tools.tool import UNAVAILABLE, ToolResult

SAMPLE = 20
"""Lines of it that the model reads."""


async def put_away(result: ToolResult, task: Task, files: TempFiles) -> ToolResult:
    """Returns the result with a sample in the place of its text, which a file has now; a fault where none can be made."""
    try:
        file_id = await asyncio.to_thread(files.write, task, result.text)
        sample = "\n".join(files.lines(task, file_id, 0, SAMPLE) or ())
    except OSError as error:
        return ToolResult(text=UNAVAILABLE, fault="unavailable", detail=f"its {len(result.text):,} characters: {error}")
    head = f"This result has {len(result.text):,} characters, too many to read. All of it is in the file {file_id}, which begins:"
    return result.replace(text=f"{head}\n{sample}\n\nGet what you need of it with exec_python, file_id {file_id}.")
