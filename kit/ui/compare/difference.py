"""What differs between turns, and what each lost: read from their events and routing decisions,
never from their texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from kit.core.bodies.speech import Acknowledged
from kit.core.bodies.turn import TurnStarted
from kit.core.outcome import RoutingDecision
from kit.core.value import Value
from kit.ui.shared.table import row_html, table_html
from kit.ui.shared.turn_facts import fault_words, model_words
from kit.ui.shared.turn_view import PLANNED, TurnView
from kit.ui.shared.wording import label

UNKNOWN = "–"
UNASKED = "nobody was asked"


class LostPart(Value):
    """A part of a message that a turn did not answer."""

    name: str
    """A sub-agent's name, or the words of a part that no sub-agent stands for."""
    words: str = ""
    """The sub-agent's part of the message, where a turn sent no more than that."""
    reason: str = UNASKED
    silent: bool = False
    """The answer does not own up to it."""


class Parts(Value):
    """The parts of a message in one turn."""

    count: int
    """How many there are, as far as the turns that were asked the same know."""
    lost: tuple[LostPart, ...] = ()


NONE = ("nothing", "nothing owed")
"""Figures that say something only beside others."""


def differences_html(turns: Mapping[str, TurnView], parts: Mapping[str, Parts]) -> str:
    """Returns a table of what differs, a row for each turn, and under it what is the same; both mappings are by label.

    Nothing for a single turn.
    """
    if len(turns) < 2:
        return ""
    rows = {name: _figures(view, parts.get(name)) for name, view in turns.items()}
    first = next(iter(rows.values()))
    differing = [head for head in first if len({figures[head] for figures in rows.values()}) > 1]
    same = [
        f"{head.lower()} {text}"
        for head, text in first.items()
        if head not in differing and text not in (UNKNOWN, *NONE)
    ]
    lines = [
        row_html(name, *(escape(figures[head]) for head in differing))
        for name, figures in rows.items()
    ]
    table = table_html("What differs", lines, ("Turn", *differing), kind="differences")
    differ = f"They differ in {_list(map(str.lower, differing))}. " if differing else ""
    return f'{table}<p class="same">{differ}{f"The same in all: {escape(_list(same))}." if same else ""}</p>'


def _figures(view: TurnView, parts: Parts | None) -> dict[str, str]:
    owned_up = view.bodies(Acknowledged)
    started = next(iter(view.bodies(TurnStarted)), None)
    return {
        "Answered": f"{parts.count - len(parts.lost)} of {parts.count}" if parts else UNKNOWN,
        "Pattern": view.pattern.replace("_", " "),
        "Model": model_words(view.model),
        "Limit": str(started.cap) if started and view.pattern != PLANNED else UNKNOWN,
        "Made to fail": ", ".join(map(fault_words, view.faults)) or "nothing",
        "Seconds": f"{view.seconds:.2f}" if view.seconds is not None else UNKNOWN,
        "First words": f"{view.ttft:.2f} s" if view.ttft is not None else UNKNOWN,
        "Tokens": f"{view.tokens:,}" if view.tokens is not None else UNKNOWN,
        "Cost": view.cost_words,
        "Owned up": owned_up[-1].path if owned_up else UNKNOWN if view.running else "nothing owed",
    }


def compare(turns: Mapping[str, TurnView]) -> dict[str, Parts]:
    """Returns what became of the message in each turn that has ended; both mappings are by label.

    Lost are sub-agents that have a part in the message and did not answer it, and parts that the
    turn counted itself and asked nobody for.
    """
    ended = {
        name: (view, view.routing)
        for name, view in turns.items()
        if view.routing is not None and not view.running
    }
    results: dict[str, Parts] = {}
    for name, (view, routing) in ended.items():
        words = _parts_of_message(
            [same for same in ended.values() if same[0].question == view.question]
        )
        failed = {part.agent for part in view.parts if part.state in ("failed", "stopped")}
        answered = {
            outcome.agent
            for outcome in routing.outcomes
            if outcome.result in ("success", "partial")
        } - failed
        lost = {agent: text for agent, text in words.items() if agent not in answered}
        owed = {part for body in view.bodies(Acknowledged) for part in body.owed}
        unasked = [part for part in routing.left_out.names if part.strip("“”") not in lost.values()]
        parts = [_lost_part(view, agent, text, owed) for agent, text in lost.items()]
        parts += [LostPart(name=part, silent=part not in owed) for part in unasked]
        results[name] = Parts(count=len(words) + len(unasked), lost=tuple(parts))
    return results


def _parts_of_message(turns: Sequence[tuple[TurnView, RoutingDecision]]) -> dict[str, str]:
    """Returns each sub-agent that has a part in one message, with the words of that part where they
    are known.

    It was asked by half of the turns, or it was sent some words of the message that no sub-agent
    asked more often was sent.
    """
    counts = Counter(
        agent
        for _, routing in turns
        for agent in dict.fromkeys((*routing.invoked, *routing.dropped))
    )
    parts: dict[str, str] = {}
    for agent, count in counts.most_common():
        words = _words(agent, [view for view, _ in turns])
        if words not in parts.values() if words else 2 * count >= len(turns):
            parts[agent] = words
    return dict(sorted(parts.items(), key=lambda part: turns[0][0].question.find(part[1])))


def _lost_part(view: TurnView, agent: str, words: str, owed: set[str]) -> LostPart:
    step = next((step for step in view.parts if step.agent == agent and step.state != "ok"), None)
    reason = step.verdict if step else "over the limit" if agent in view.left_out else UNASKED
    return LostPart(
        name=label(agent), words=words, reason=reason, silent=owed.isdisjoint({agent, f"“{words}”"})
    )


def _words(agent: str, views: Sequence[TurnView]) -> str:
    """Returns the shortest part of the message that a turn sent to an agent; empty where every turn
    sent it the whole."""
    queries = [
        (step.query, view.question) for view in views for step in view.steps if step.agent == agent
    ]
    return min(
        (query for query, question in queries if query != question and query in question),
        key=len,
        default="",
    )


def losses_html(parts: Mapping[str, Parts], *, running: bool) -> str:
    """Returns one paragraph that says which turn lost what, why, and whether its answer owns up to
    it; `running`: so far."""
    clauses = [
        f"<b>{escape(name)}</b> lost {_list(_reasons(own.lost))}"
        for name, own in parts.items()
        if own.lost
    ]
    if complete := [f"<b>{escape(name)}</b>" for name, own in parts.items() if not own.lost]:
        clauses.append(f"{_list(complete)} lost nothing")
    text = "; ".join(clauses) or "no turn has ended"
    return f'<p class="losses" aria-live="polite">{"So far: " if running else ""}{text}.</p>'


def _reasons(parts: Sequence[LostPart]) -> Iterator[str]:
    for reason, silent in dict.fromkeys((part.reason, part.silent) for part in parts):
        names = _list(
            _part(part) for part in parts if (part.reason, part.silent) == (reason, silent)
        )
        yield f"{names} ({escape(reason)}{', <em>and does not say so</em>' if silent else ''})"


def _part(part: LostPart) -> str:
    return escape(part.name) + (f" “{escape(part.words)}”" if part.words else "")


def _list(items: Iterable[str]) -> str:
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last
