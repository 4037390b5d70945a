"""Faults on purpose of the services that tools call: what their requests say of them, and what they make of the answer
of one that cannot be told to go wrong, a simulation or an MCP server."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kit.core.bodies.speech import Status
from kit.core.fault import HEADER, STRANGE_STATUS, Kind
from kit.core.fault_injection import active_faults
from kit.core.outcome import Reason
from kit.tools.enricher import CAVEAT, UNAVAILABLE
from kit.tools.tool import ToolResult, tool_context

if TYPE_CHECKING:
    import httpx

FAULTS: Mapping[Kind, Reason | None] = {
    "error_envelope": "unavailable",
    "foreign_principal": "principal_mismatch",
    "bad_payload": "contract_violation",
    "version_break": "unavailable",
    "partial_envelope": None,
}
"""Fault of a service -> what the tool over it makes of that; None: it answers with a reservation."""


def with_faults(answer: ToolResult, agent: str) -> ToolResult:
    """Returns the answer as an agent gets it in this turn; the answer itself where the turn has no
    fault for its service."""
    result = answer
    for fault in active_faults(agent, "upstream"):
        if (reason := FAULTS[fault.kind]) is not None:
            result = ToolResult(text=UNAVAILABLE, fault=reason, detail=f"injected {fault.kind}")
        elif result is answer and answer.fault is None:
            result = answer.replace(text=f"{answer.text} {CAVEAT}", caveat=CAVEAT)
    return result


async def asking_for_faults(request: "httpx.Request") -> None:
    """A request hook of httpx for the clients that tools use; it works the same in-process and over a socket."""
    context = tool_context()
    for _ in active_faults(context.agent, "tool"):
        context.emit(Status(agent=context.agent, status=STRANGE_STATUS))
    kinds = [fault.kind for fault in active_faults(context.agent, "upstream")]
    if kinds:
        request.headers[HEADER] = ",".join(kinds)
