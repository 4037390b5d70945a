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
from kit.ui.shared.turn_facts import OWNING_UP, fault_words
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import label, model_words

UNKNOWN = "–"
UNASKED = "nobody was asked"
OVER_CAP = "over the limit"
SHOWN_BY_OTHERS = "as the others show, nobody was asked"


class LostPart(Value):
    """A part of a message that a turn did not answer."""

    name: str
    """A sub-agent's name, or the words of a part that no sub-agent stands for."""
    words: str = ""
    """The sub-agent's part of the message, where a turn sent no more than that."""
    reason: str = UNASKED
    silent: bool = False
    """The answer does not own up to it."""


NONE = ("nothing", OWNING_UP["nothing_owed"])
"""Figures that say something only beside others."""


def differences_html(turns: Mapping[str, TurnView]) -> str:
    """Returns a table of what differs, a row for each turn, and under it what is the same; `turns` are by label.

    Nothing for a single turn.
    """
    if len(turns) < 2:
        return ""
    rows = {name: _figures(view) for name, view in turns.items()}
    first = next(iter(rows.values()))
    differing: list[str] = []
    for head in first:
        if len({figures[head] for figures in rows.values()}) > 1:
            differing.append(head)
    alike: list[str] = []
    for head, text in first.items():
        if head not in differing and text not in (UNKNOWN, *NONE):
            alike.append(f"{head.lower()} {text}")
    lines: list[str] = []
    for name, figures in rows.items():
        lines.append(row_html(name, *(escape(figures[head]) for head in differing)))
    table = table_html("What differs", lines, ("Turn", *differing), kind="differences")
    if differing:
        differ = f"They differ in {_list(map(str.lower, differing))}. "
    else:
        differ = ""
    return f'{table}<p class="same">{differ}{f"The alike in all: {escape(_list(alike))}." if alike else ""}</p>'


def _figures(view: TurnView) -> dict[str, str]:
    started = next(iter(view.bodies(TurnStarted)), None)
    return {
        "How it ended": view.headline,
        "Pattern": view.pattern.replace("_", " "),
        "Model": model_words(view.model),
        "Limit": str(started.cap) if started and not view.is_plan else UNKNOWN,
        "Made to fail": ", ".join(map(fault_words, view.faults)) or "nothing",
        "Seconds": f"{view.seconds:.2f}" if view.seconds is not None else UNKNOWN,
        "First words": f"{view.ttft:.2f} s" if view.ttft is not None else UNKNOWN,
        "Tokens": f"{view.tokens:,}" if view.tokens is not None else UNKNOWN,
        "Cost": view.cost_words,
        "Owned up": OWNING_UP[view.owning_up] if view.owning_up else UNKNOWN,
    }


def compare(turns: Mapping[str, TurnView]) -> dict[str, tuple[LostPart, ...]]:
    """Returns what each turn that has ended lost of its message; both mappings are by label.

    Lost are the parts that the turn itself knows of, failed or left out, and beside them the
    sub-agents that turns of the same message show to have a part in it and that this one did not ask.
    """
    ended = {
        name: (view, view.routing)
        for name, view in turns.items()
        if view.routing is not None and not view.running
    }
    results: dict[str, tuple[LostPart, ...]] = {}
    for name, (view, routing) in ended.items():
        alike: list[tuple[TurnView, RoutingDecision]] = []
        for candidate in ended.values():
            if candidate[0].question == view.question:
                alike.append(candidate)
        results[name] = tuple(_lost_parts(view, routing, _parts_of_message(alike)))
    return results


def _lost_parts(
    view: TurnView, routing: RoutingDecision, message: Mapping[str, str]
) -> Iterator[LostPart]:
    """Yields what one turn lost; `message` has the words of each sub-agent's part in it."""
    owed = {part for body in view.bodies(Acknowledged) for part in body.owed}
    for step in view.taken_on:
        if step.state in ("failed", "stopped"):
            yield LostPart(
                name=label(step.agent),
                words=message.get(step.agent, ""),
                reason=step.verdict,
                silent=step.agent not in owed,
            )
    for agent in view.parts.over_cap:
        yield LostPart(
            name=label(agent),
            words=message.get(agent, ""),
            reason=OVER_CAP,
            silent=agent not in owed,
        )
    # A part that is left out has the words of the message and no sub-agent. Where another turn sent
    # these words to a sub-agent, that one names the part.
    left_out = view.parts.left_out
    agents = {words: agent for agent, words in message.items() if words}
    known = {*routing.invoked, *view.parts.over_cap}
    for name, words in zip(left_out.names, left_out.parts, strict=False):
        agent = agents.get(words)
        silent = name not in owed
        if agent is None:
            yield LostPart(name=name, silent=silent)
        else:
            known.add(agent)
            yield LostPart(name=label(agent), words=words, silent=silent)
    unknown_agents = [agent for agent in message if agent not in known]
    for agent in unknown_agents:
        yield LostPart(name=label(agent), words=message[agent], reason=SHOWN_BY_OTHERS, silent=True)
    if left_out.unnamed and not unknown_agents:
        name = left_out.names[-1]
        yield LostPart(name=name, silent=name not in owed)


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


def _words(agent: str, views: Sequence[TurnView]) -> str:
    """Returns the shortest part of the message that a turn sent to an agent; empty where every turn
    sent it the whole."""
    queries: list[tuple[str, str]] = []
    for view in views:
        for step in view.steps:
            if step.agent == agent:
                queries.append((step.query, view.question))
    return min(
        (query for query, question in queries if query != question and query in question),
        key=len,
        default="",
    )


def losses_html(lost: Mapping[str, tuple[LostPart, ...]], *, running: bool) -> str:
    """Returns one paragraph that says which turn lost what, why, and whether its answer owns up to
    it; `running`: so far."""
    clauses: list[str] = []
    for name, parts in lost.items():
        if parts:
            clauses.append(f"<b>{escape(name)}</b> lost {_list(_reasons(parts))}")
    if complete := [f"<b>{escape(name)}</b>" for name, parts in lost.items() if not parts]:
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
    *unknown_agents, last = items
    if unknown_agents:
        return f"{', '.join(unknown_agents)} and {last}"
    return last
