"""What can be made to go wrong in a turn, as data: where, how, and in plain words what a person would see."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, get_args

from kit.core.errors import FaultError, UnknownId
from kit.core.value import Value

Kind = Literal[
    "raise",
    "hang",
    "slow_drip",
    "instantiation",
    "refuses",
    "error_envelope",
    "partial_envelope",
    "foreign_principal",
    "bad_payload",
    "version_break",
    "malformed_status",
    "unknown_tool",
    "repeats_id",
    "drops_call",
    "routing_fails",
    "routing_hangs",
    "composing_fails",
    "composing_hangs",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Target = Literal["model", "agent", "upstream", "tool"]

RAW = "zx-raw-9d2e"
"""Stands in every raw reason a fault gives: it may appear in the trace, never in a text."""
CANARY = "zx-stranger-41c7"
"""Stands in every payload of a foreign principal and every payload that breaks its type: it may appear nowhere."""
CANARY_NUMBER = 918_273_645
"""Takes the place of larger numbers in a foreign payload."""
STRANGE_STATUS = "zx_status_77b1"
"""A progress report outside the vocabulary: no person may read it."""
HEADER = "x-inject"
"""How a request to an embedded service asks for faults: their kinds, separated by commas."""


class About(Value):
    """What is known of a kind of fault."""

    label: str
    """One sentence that goes on from the name of an agent: "Rewards does not answer in time"."""
    target: Target = "model"
    """What is made to misbehave: the model, the agent itself, the service behind its tools, or a tool."""
    orchestrator: Literal["never", "only", "too"] = "never"
    """Whether the orchestrator can have it, and nobody else."""
    seconds: float = 0.0
    """How long it takes when nobody says."""


HANGS = 600.0
"""Longer than any budget of a turn."""
# What a kind does to a model stands in kit/models/faulty.py, to an agent in kit/runtime/agents/faulty.py, to a service
# in kit/worlds/service. Pages, `kit ask --fault` and scenarios list every kind of this catalogue by themselves.
CATALOGUE: Mapping[Kind, About] = {
    "raise": About(label="fails in the middle of its work"),
    "hang": About(label="does not answer in time", seconds=HANGS),
    "slow_drip": About(label="answers one word at a time", orchestrator="too", seconds=1.0),
    "instantiation": About(label="cannot be started at all", target="agent"),
    "refuses": About(label="declines to answer", orchestrator="too"),
    "error_envelope": About(label="gets no data from its service", target="upstream"),
    "partial_envelope": About(label="gets data with one source missing", target="upstream"),
    "foreign_principal": About(label="is sent somebody else's data", target="upstream"),
    "bad_payload": About(label="is sent data of the wrong shape", target="upstream"),
    "version_break": About(label="is sent data of a version it does not know", target="upstream"),
    "malformed_status": About(label="reports progress in a word nobody agreed on", target="tool"),
    "unknown_tool": About(label="calls a tool that does not exist", orchestrator="too"),
    "repeats_id": About(label="gives two calls the same id", orchestrator="too"),
    "drops_call": About(label="forgets the last of its calls, once", orchestrator="only"),
    "routing_fails": About(label="fails while it decides whom to ask", orchestrator="only"),
    "routing_hangs": About(label="never decides whom to ask", orchestrator="only", seconds=HANGS),
    "composing_fails": About(label="fails while it words the answer", orchestrator="only"),
    "composing_hangs": About(
        label="never finishes wording the answer", orchestrator="only", seconds=HANGS
    ),
}
"""Every kind, with what is known of it."""

ALIASES: Mapping[str, Kind] = {
    "error": "raise",
    "crash": "raise",
    "timeout": "hang",
    "slow": "slow_drip",
    "down": "error_envelope",
    "partial": "partial_envelope",
    "stranger": "foreign_principal",
    "garbage": "bad_payload",
    "version": "version_break",
    "status": "malformed_status",
    "missing": "instantiation",
    "refusal": "refuses",
    "tool": "unknown_tool",
    "repeat": "repeats_id",
    "forgets": "drops_call",
}
"""Shorter words for the same."""
_OF_ROOT: Mapping[str, Kind] = {"raise": "routing_fails", "hang": "routing_hangs"}
"""What these two are of the orchestrator: those of its routing call."""


class Fault(Value):
    """One thing that goes wrong in a turn."""

    where: str
    """Id of an agent, the orchestrator included."""
    kind: Kind
    seconds: float | None = None
    """How long it hangs, or the pause between two words of a slow drip; None takes the kind's own."""

    @property
    def pause(self) -> float:
        """Seconds; 0 for the kinds that take no time."""
        if self.seconds is None:
            return CATALOGUE[self.kind].seconds
        return self.seconds

    @property
    def needs_agent(self) -> bool:
        """Whether it happens only where the agent itself is at work; others happen at its services
        and tools, whoever asks."""
        return CATALOGUE[self.kind].target in ("model", "agent")

    def __str__(self) -> str:
        if self.seconds is None:
            return f"{self.where}={self.kind}"
        return f"{self.where}={self.kind}:{self.seconds:g}"

    @classmethod
    def from_text(cls, text: str) -> "Fault":
        """The fault that `str()` wrote so, as traces keep it; people's words take `parse`. Raises
        ValueError for another form."""
        where, _, failure = text.partition("=")
        kind, _, seconds = failure.partition(":")
        return cls.model_validate({"where": where, "kind": kind, "seconds": seconds or None})


class InjectedFault(RuntimeError):
    """What a fault raises; its text is the kind that must stay in the trace."""

    def __init__(self, fault: Fault):
        super().__init__(f"injected {fault.kind} at {fault.where} (code 503, {RAW})")


def kinds_of(where: str, root: str) -> tuple[Kind, ...]:
    """The kinds an agent can have, or the orchestrator when `where` is `root`."""
    unfit = "never" if where == root else "only"
    return tuple(kind for kind, about in CATALOGUE.items() if about.orchestrator != unfit)


def parse(text: str, agents: Collection[str], root: str) -> Fault:
    """Reads `agent=kind` or `agent=kind:seconds`, such as `rewards=timeout` and `shop=hang:12`.

    `agents` are the ids there are, `root` the orchestrator's; the word "orchestrator" always means
    it. A kind may be one of ALIASES. Raises FaultError for another form, UnknownId naming the
    nearest agents or kinds.
    """
    where, equals, failure = (part.strip() for part in text.partition("="))
    if not (where and equals and failure):
        raise FaultError(
            f"fault {text!r} cannot be read: write agent=kind, such as rewards=timeout"
        )
    if where == "orchestrator":
        where = root
    if where not in agents:
        raise UnknownId("agent", where, agents)
    word, colon, figure = (part.strip() for part in failure.partition(":"))
    kind = _kind(word, where, root)
    return Fault(where=where, kind=kind, seconds=_seconds(text, kind, figure) if colon else None)


def parse_all(
    texts: Iterable[str | Fault], agents: Collection[str], root: str
) -> tuple[Fault, ...]:
    """Several faults, each a Fault already or in words; both are held against the agents there are."""
    return tuple(parse(str(text), agents, root) for text in texts)


def _kind(word: str, where: str, root: str) -> Kind:
    fit = kinds_of(where, root)
    kind: str = ALIASES.get(word, word)
    if where == root:
        kind = _OF_ROOT.get(kind, kind)
    for candidate in KINDS:
        if kind != candidate:
            continue
        if candidate in fit:
            return candidate
        # The orchestrator can have all kinds but some of a sub-agent's, and the other way round.
        owner = "a sub-agent" if where == root else "the orchestrator"
        raise FaultError(
            f"fault {word!r} is one of {owner}, not of {where!r}; it can have {', '.join(fit)}"
        )
    aliases = [alias for alias, meaning in ALIASES.items() if meaning in fit]
    raise UnknownId("fault", word, (*fit, *aliases))


def _seconds(text: str, kind: Kind, figure: str) -> float:
    try:
        seconds = float(figure)
    except ValueError:
        seconds = -1.0
    # Python reads `inf` and `nan` as numbers too.
    if not (CATALOGUE[kind].seconds and math.isfinite(seconds) and seconds >= 0):
        with_seconds = ", ".join(kind for kind, about in CATALOGUE.items() if about.seconds)
        raise FaultError(
            f"fault {text!r} cannot be read: seconds are a number, and only {with_seconds} take any"
        )
    return seconds
