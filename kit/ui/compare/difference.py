"""What differs between turns, and what each lost: read from their events and routing decisions, never from their texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from kit.core.event import Acknowledged, TurnStarted
from kit.core.outcome import RoutingDecision
from kit.core.value import Value
from kit.ui.shared.table import row_html, table_html
from kit.ui.shared.turn_facts import fault_words, model_words
from kit.ui.shared.turn_view import TurnView
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


class Comparison(Value):
    """Which parts of a message turns lost."""

    agents: tuple[str, ...] = ()
    """The sub-agents that have a part in the message, in the order of their parts."""
    losses: dict[str, tuple[LostPart, ...]] = {}
    """Label of a turn that has ended -> what it lost."""

    def answered(self, name: str) -> str:
        """Returns how many parts a turn answered, and of how many."""
        if name not in self.losses:
            return UNKNOWN
        lost = self.losses[name]
        parts = len({*map(label, self.agents), *(part.name for part in lost)})
        return f"{parts - len(lost)} of {parts}"


def differences_html(turns: Mapping[str, TurnView], comparison: Comparison) -> str:
    """Returns a table of what differs, a row for each turn, and under it what is the same; `turns` by label.

    Nothing for a single turn.
    """
    if len(turns) < 2:
        return ""
    rows = {name: {"Answered": comparison.answered(name), **_figures(view)} for name, view in turns.items()}
    first = next(iter(rows.values()))
    differing = [head for head in first if len({figures[head] for figures in rows.values()}) > 1]
    same = [f"{head.lower()} {text}" for head, text in first.items() if head not in differing and text != UNKNOWN]
    lines = [row_html(name, *(escape(figures[head]) for head in differing)) for name, figures in rows.items()]
    table = table_html("What differs", lines, ("Turn", *differing), kind="differences")
    differ = f"They differ in {_list(map(str.lower, differing))}. " if differing else ""
    return f'{table}<p class="same">{differ}{f"The same in all: {escape(_list(same))}." if same else ""}</p>'


def _figures(view: TurnView) -> dict[str, str]:
    owned_up = view.bodies(Acknowledged)
    started = next(iter(view.bodies(TurnStarted)), None)
    return {
        "Pattern": view.pattern.replace("_", " "),
        "Model": model_words(view.model),
        "Limit": str(started.cap) if started else UNKNOWN,
        "Made to fail": ", ".join(map(fault_words, view.faults)) or "nothing",
        "Seconds": f"{view.seconds:.2f}" if view.seconds is not None else UNKNOWN,
        "First words": f"{view.ttft:.2f} s" if view.ttft is not None else UNKNOWN,
        "Tokens": f"{view.tokens:,}" if view.tokens is not None else UNKNOWN,
        "Cost": view.cost_words,
        "Owned up": owned_up[-1].path if owned_up else UNKNOWN if view.running else "nothing owed",
    }


def compare(turns: Mapping[str, TurnView]) -> Comparison:
    """Returns what each turn that has ended lost, by label: sub-agents with a part in the message that gave it no answer,
    and the parts that it counted itself and asked nobody for."""
    decisions = {name: view.routing for name, view in turns.items() if view.routing is not None and not view.running}
    words = _parts_of_message(list(turns.values()), list(decisions.values()))
    losses: dict[str, tuple[LostPart, ...]] = {}
    for name, routing in decisions.items():
        answered = {outcome.agent for outcome in routing.outcomes if outcome.result in ("success", "partial")}
        lost = {agent: text for agent, text in words.items() if agent not in answered}
        owed = {part for body in turns[name].bodies(Acknowledged) for part in body.owed}
        unasked = [part for part in routing.left_out.names if part.strip("“”") not in lost.values()]
        losses[name] = (
            *(_lost_part(turns[name], agent, text, owed) for agent, text in lost.items()),
            *(LostPart(name=part, silent=part not in owed) for part in unasked),
        )
    return Comparison(agents=tuple(words), losses=losses)


def _parts_of_message(views: Sequence[TurnView], decisions: Sequence[RoutingDecision]) -> dict[str, str]:
    """Returns each sub-agent that has a part in the message, with the words of that part where they are known.

    It was asked by half of the turns, or it was sent some words of the message that no sub-agent asked more often was sent.
    """
    counts = Counter(agent for routing in decisions for agent in dict.fromkeys((*routing.invoked, *routing.dropped)))
    parts: dict[str, str] = {}
    for agent, count in counts.most_common():
        words = _words(agent, views)
        if words not in parts.values() if words else 2 * count >= len(decisions):
            parts[agent] = words
    return dict(sorted(parts.items(), key=lambda part: views[0].question.find(part[1])))


def _lost_part(view: TurnView, agent: str, words: str, owed: set[str]) -> LostPart:
    step = next((step for step in view.parts if step.agent == agent), None)
    reason = step.verdict if step else "over the limit" if agent in view.left_out else UNASKED
    return LostPart(name=label(agent), words=words, reason=reason, silent=owed.isdisjoint({agent, f"“{words}”"}))


def _words(agent: str, views: Sequence[TurnView]) -> str:
    """Returns the shortest part of the message that a turn sent to an agent; empty where every turn sent it the whole."""
    queries = [(step.query, view.question) for view in views for step in view.steps if step.agent == agent]
    return min((query for query, question in queries if query != question and query in question), key=len, default="")


def losses_html(losses: Mapping[str, tuple[LostPart, ...]], *, running: bool) -> str:
    """Returns one paragraph that says which turn lost what, why, and whether its answer owns up to it; `running`: so far."""
    clauses = [f"<b>{escape(name)}</b> lost {_list(_reasons(parts))}" for name, parts in losses.items() if parts]
    if complete := [f"<b>{escape(name)}</b>" for name, parts in losses.items() if not parts]:
        clauses.append(f"{_list(complete)} lost nothing")
    text = "; ".join(clauses) or "no turn has ended"
    return f'<p class="losses" aria-live="polite">{"So far: " if running else ""}{text}.</p>'


def _reasons(parts: Sequence[LostPart]) -> Iterator[str]:
    for reason, silent in dict.fromkeys((part.reason, part.silent) for part in parts):
        names = _list(_part(part) for part in parts if (part.reason, part.silent) == (reason, silent))
        yield f"{names} ({escape(reason)}{', <em>and does not say so</em>' if silent else ''})"


def _part(part: LostPart) -> str:
    return escape(part.name) + (f" “{escape(part.words)}”" if part.words else "")


def _list(items: Iterable[str]) -> str:
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last
