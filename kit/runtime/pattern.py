"""A pattern as a value: its name, how it runs a turn, and the team it needs where that is not the deck's own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kit.compose.deck import Deck
from kit.core.outcome import AgentCall, Outcome
from kit.runtime.context import RunContext
from kit.runtime.team import Team


class Interrupted(BaseException):
    """Ends a turn whose work is not over: another turn may go on with it, so nobody is told to ask again."""


Run = Callable[[AgentCall, RunContext], Awaitable[Outcome]]
"""Orchestrates one turn: the root call in, the turn's outcome out."""
Bind = Callable[[Deck], Team]
Stage = Callable[[Deck, Bind], Team]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to orchestrate a turn. `name` is what events, stores and the command line call it."""

    name: str
    run: Run
    stage: Stage | None = None
    """Makes the team that the pattern needs from the deck's cards; None where the deck's own team will do."""
    has_failsafe: bool = False
    """Whether its first reply holds all calls at once and goes through the guards, so that the
    failsafe can ask for a missing one (decisions 4)."""
    is_plan: bool = False
    """Whether a turn is run as a plan, which is resumed step by step and never forked; the deck needs a planner."""

    def team(self, deck: Deck, bind: Bind) -> Team:
        """Returns the team this pattern runs with; `bind` makes a team of a deck. Raises what `bind` raises."""
        if self.stage is None:
            return bind(deck)
        return self.stage(deck, bind)
