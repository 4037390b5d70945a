"""An answer owns up to every part that failed or was left out: checked, and said for it when it does not (PC2-FR-14)."""

import re
from collections.abc import Iterable, Sequence

from kit.core.event import Acknowledged
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.runtime.context import RunContext

_OWNING = re.compile(
    r"\b(?:not|n't|unable|couldn.t|cannot|can.t|wasn.t|weren.t|isn.t|aren.t|unavailable|failed|fail|left out|leave out|skipped|"
    r"later|missing|without|sorry|trouble|no answer|didn.t|haven.t)\b",
    re.IGNORECASE,
)


def plain(agent: str) -> str:
    """An agent's id in plain words."""
    return agent.replace("_", " ").replace("-", " ").lower()


def owed(outcomes: Iterable[Outcome], dropped: Iterable[AgentCall]) -> tuple[str, ...]:
    """Agents the answer must own up to, each once, in the order they were called."""
    failed = [o.agent for o in outcomes if isinstance(o, Failure)]
    return tuple(dict.fromkeys([*failed, *(call.agent for call in dropped)]))


def missing(text: str, agents: Sequence[str]) -> tuple[str, ...]:
    """Those of `agents` that no sentence of `text` both names and owns up to."""
    sentences = [s.lower() for s in re.split(r"(?<=[.!?])\s+|\n+", text) if _OWNING.search(s)]
    return tuple(agent for agent in agents if not any(plain(agent) in sentence for sentence in sentences))


def apology(outcomes: Iterable[Outcome], dropped: Iterable[AgentCall], only: Sequence[str] | None = None) -> str:
    """One fixed sentence for each part that is owed; `only` limits it to these agents."""
    lines: list[str] = []
    dropped = tuple(dropped)
    for agent in owed(outcomes, ()):
        if only is None or agent in only:
            lines.append(f"I wasn't able to get an answer about {plain(agent)} right now.")
    left = list(dict.fromkeys(plain(c.agent) for c in dropped if only is None or c.agent in only))
    if left:
        lines.append(f"I left out {_listed(left)} for now; ask me again and I'll take it next.")
    return " ".join(lines)


def settle(text: str, ctx: RunContext) -> str:
    """The composed text, with a fixed sentence appended for every part it does not own up to (decisions 8)."""
    turn = ctx.turn
    agents = owed(turn.outcomes, turn.dropped)
    if not agents:
        return text
    silent = missing(text, agents)
    ctx.emit(Acknowledged(path="appended" if silent else "composed", owed=agents))
    return f"{text}\n\n{apology(turn.outcomes, turn.dropped, silent)}" if silent else text


def rescue(outcomes: Sequence[Outcome], dropped: Sequence[AgentCall]) -> str:
    """A reply without any model: the answers in hand, then what could not be answered (PC2-S5.8b)."""
    answers = [o.text for o in outcomes if isinstance(o, Answer)]
    regret = apology(outcomes, dropped)
    if not answers:
        return regret or "I wasn't able to look into that right now. Please try again in a moment."
    return "\n\n".join([*answers, *([regret] if regret else [])])


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
