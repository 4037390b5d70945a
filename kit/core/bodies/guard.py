"""Calls that did not run as a model made them: dropped, refused or changed."""

from typing import Literal

from kit.core.value import Value

GuardAction = Literal[
    "asked_again", "merged", "short", "rerouted", "dropped", "reworded", "mended", "answered"
]
"""What a guard did. `short`: intents are still without a call after the retry. `answered`: it spoke
itself, and nobody was asked."""


class CallDropped(Value):
    """A sub-agent call that never ran."""

    kind: Literal["call_dropped"] = "call_dropped"
    agent: str
    call_id: str
    reason: Literal["over_cap", "guard"]
    guard: str | None = None


class AccessDenied(Value):
    """An agent reached for what its contract does not give it, or so that nobody can read it; it never ran."""

    kind: Literal["refused"] = "refused"
    agent: str
    """Who reached."""
    what: Literal["tool", "agent"]
    name: str
    because: Literal["not_on_card", "recursion", "depth", "bad_arguments"]


class GuardActed(Value):
    """A guard acted on a decision; never told to the user (decisions 7)."""

    kind: Literal["guarded"] = "guarded"
    guard: str
    agent: str
    reason: str
    action: GuardAction
    call_id: str = ""
    """The call acted on; empty when the whole decision was."""


GuardBody = CallDropped | AccessDenied | GuardActed
