"""What a system is given for one scenario: all that an adapter has to know of this package."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROMPT = (
    "Ask one agent for each part of the message, all at the same time. Then join their answers."
)
"""The orchestrator's instructions."""
CHILD_PROMPT = "Answer the request by means of your tool."


class Data(NamedTuple):
    """What a lookup brings, and whose it is."""

    text: str
    principal: str


@dataclass(frozen=True, slots=True)
class Child:
    """An agent that can be asked.

    `ask` is an async function of one string, called like the child and described by its docstring.
    A child with `tools` is an agent with a model of its own, `model`, which calls them; its `ask` is not used.
    """

    name: str
    description: str
    ask: Callable[[str], Awaitable[str]]
    tools: "tuple[Child, ...]" = ()
    model: "Model | None" = None
    data: Callable[[str], Awaitable[Data]] | None = None
    """Of a lookup: what `ask` returns, and the principal it belongs to, for a system that looks at that."""


@dataclass(frozen=True, slots=True)
class Model:
    """A scripted model behind an endpoint that speaks OpenAI's Chat Completions."""

    name: str
    base_url: str
    api_key: str = "none"


@dataclass(frozen=True, slots=True)
class Task:
    """One turn."""

    message: str
    children: tuple[Child, ...]
    model: Model
    """Of the orchestrator."""
    best: bool
    """Whether to use the best configuration that the framework's documentation offers, else its defaults."""
    folder: Path
    """For whatever is to outlive the process."""
    resumes: bool = False
    """Whether the process died in this session, which is now asked again."""
    prompt: str = PROMPT
    child_prompt: str = CHILD_PROMPT
    session: str = "session-1"
    principal: str = "alice"
    seconds: float | None = None
    """How long a child may take; None: as the framework has it."""
    cap: int | None = None
    """How many children may be asked in this turn."""
    model_calls: int | None = None
    """How many model calls the whole tree may make."""
