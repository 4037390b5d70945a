"""What a fault on purpose makes of the answer of a service that cannot be told to go wrong: a
simulation, an MCP server."""

from collections.abc import Mapping

from kit.core.fault import Kind
from kit.core.fault_injection import active_faults
from kit.core.outcome import Reason
from kit.tools.enricher import CAVEAT, UNAVAILABLE
from kit.tools.tool import ToolResult

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
