"""A caller with no turn around it, for measuring what one call of a sub-agent does."""

import asyncio
from collections.abc import Collection

from kit.compose.parts import DeckSettings
from kit.core.context import DynamicContext, InheritedContext, Principal
from kit.runtime.context import RunContext, TurnState
from kit.runtime.log import TurnLog
from kit.runtime.memory import FixedMemory
from kit.runtime.speech.progress import Progress
from kit.runtime.team import Team

NOBODY = Principal(tenant_id="bench", user_id="bench")


def caller(team: Team, callees: Collection[str], cap: int = 8) -> RunContext:
    """The orchestrator's side of a turn on the running loop; `dispatch` and `fan_out` may be called with it by hand."""
    log = TurnLog("by-hand", asyncio.get_running_loop().time)
    dynamic = DynamicContext(date="2026-11-01", user_id=NOBODY.user_id, locale="en-US")
    settings = DeckSettings(orchestrator=team.root)
    state = TurnState(log, team.agents, dynamic, cap, "by hand", settings, FixedMemory(), Progress(log, settings))
    inherited = InheritedContext(principal=NOBODY, episode_id="by-hand", locale="en-US")
    return RunContext(state, inherited, log.new_span(), callees=frozenset(callees), path=team.root)
