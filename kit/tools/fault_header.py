"""The client's side of upstream faults: a request made in a turn that was told to go wrong says so in its header."""

import httpx

from kit.core.bodies.speech import Status
from kit.core.fault import HEADER, STRANGE_STATUS
from kit.core.fault_injection import active_faults
from kit.tools.tool import tool_context


async def asking_for_faults(request: httpx.Request) -> None:
    """A request hook of httpx for the clients that tools use; it works the same in-process and over a socket."""
    context = tool_context()
    for _ in active_faults(context.agent, "tool"):
        context.emit(Status(agent=context.agent, status=STRANGE_STATUS))
    kinds = [fault.kind for fault in active_faults(context.agent, "upstream")]
    if kinds:
        request.headers[HEADER] = ",".join(kinds)
