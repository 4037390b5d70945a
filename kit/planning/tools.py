"""The tools of the planner's and the executor's card."""

from kit.planning.executor import EXECUTOR_TOOLS, executor_tools
from kit.planning.planner import PLANNER_TOOLS, planner_tools
from kit.planning.services import PlanServices
from kit.tools.tool import Toolbox

PLAN_TOOLS = (*PLANNER_TOOLS, *EXECUTOR_TOOLS)
"""Their ids."""


def plan_tools(services: PlanServices) -> Toolbox:
    """Makes them, by their ids."""
    return {**planner_tools(services), **executor_tools(services)}
