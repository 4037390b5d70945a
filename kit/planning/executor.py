"""The tools of an executor."""

from collections.abc import Mapping

from langchain_core.tools import BaseTool

from kit.planning.services import PlanServices

EXECUTOR_TOOLS: tuple[str, ...] = ()
"""Their ids."""


def executor_tools(services: PlanServices) -> Mapping[str, BaseTool]:
    """Makes the tools of an executor card, by their ids."""
    return {}
