"""What differs between turns, and what each lost: read from their events and routing decisions,
never from their texts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from markupsafe import Markup, escape

from kit.core.bodies.speech import Acknowledged
from kit.core.bodies.turn import TurnStarted
from kit.core.display.count import enumeration, many
from kit.core.outcome import RoutingDecision
from kit.core.value import Value
from kit.ui.shared.tag import Tag
from kit.ui.shared.template import render, table_html
from kit.ui.shared.turn_facts import OWNING_UP, fault_words, headline
from kit.ui.shared.turn_view import StepState, TurnView
from kit.ui.shared.wording import label, model_words, simulated_words

UNKNOWN = "–"
PATTERN = "Pattern"
ENDED = "How it ended"
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


NOTHING_MISSING = "no part that was counted is missing"
NONE = ("nothing", NOTHING_MISSING)
"""Figures that say something only beside others."""
SAYS = "Says what is missing"
WAYS = {
    "mediated": "a model asks the sub-agents it chose, all at once, and writes the answer",
    "direct": "the same choice, but sub-agents speak to the user themselves",
    "classifier_gateway": "a classifier chooses whom to ask, one after another",
    "monolith": "one agent with every tool, and no sub-agents",
    "supervisor": "a model asks one sub-agent at a time, and decides again after each",
    "swarm": "sub-agents hand the question on to each other",
    "a2a": "as Mediated, over the Agent2Agent protocol",
}
"""Pattern -> how it goes, for somebody who reads its name for the first time."""


def differences_html(turns: Mapping[str, TurnView]) -> str:
    """Returns a table of what differs, a row for each turn, and under it what is the same; `turns` are by label.

    Nothing for a single turn.
    """
    if len(turns) < 2:
        return ""
    rows = {name: _figures(view) for name, view in turns.items()}
    first = next(iter(rows.values()))
    differing: list[str] = []
    alike: list[str] = []
    for head, text in first.items():
        if any(figures[head] != text for figures in rows.values()):
            # A turn has the name of its pattern.
            if head != PATTERN:
                differing.append(head)
        elif text not in (UNKNOWN, *NONE):
            alike.append(f"{head.lower()} ({text})")
    lines: list[list[str | Tag]] = []
    untouched = untouched_turns(turns)
    for name, figures in rows.items():
        view = turns[name]
        row: list[str | Tag] = [_way(name, view)]
        for head in differing:
            row.append(figures[head])
        if ENDED in differing:
            row[1 + differing.index(ENDED)] = _ending(view, is_untouched=name in untouched)
        lines.append(row)
    table = table_html("What differs", lines, ("Way", *differing), kind="differences", stacks=True)
    summary = simulated_words(view.model for view in turns.values())
    if alike:
        summary = f"The same in all: {_list(alike)}. {summary}"
    return f'{table}<p class="same">{summary}</p>'


def _way(name: str, view: TurnView) -> Markup:
    """Returns the name of a turn, and in a few words what its pattern is."""
    if view.pattern not in WAYS:
        return escape(name)
    return Markup("{}<small>{}</small>").format(name, WAYS[view.pattern])


def _ending(view: TurnView, *, is_untouched: bool) -> Markup:
    """Returns how a turn ended, as a word in a colour; `is_untouched`: nothing was broken in it, so that it is no
    better for having answered."""
    tag = escape(headline(view))
    if is_untouched:
        return tag + Markup("<small>nothing was broken</small>")
    return tag


def _figures(view: TurnView) -> dict[str, str]:
    limit = UNKNOWN
    started = view.bodies(TurnStarted)
    # A plan has limits of its own: the cap says nothing of it.
    if started and not view.is_plan:
        limit = str(started[0].cap)
    seconds = UNKNOWN
    if view.seconds is not None:
        seconds = f"{view.seconds:.2f}"
    first_words = UNKNOWN
    if view.ttft is not None:
        first_words = f"{view.ttft:.2f} s"
    tokens = UNKNOWN
    if view.tokens is not None:
        tokens = f"{view.tokens:,}"
    owning_up = UNKNOWN
    if view.owning_up == "nothing_owed":
        owning_up = NOTHING_MISSING
    elif view.owning_up:
        owning_up = OWNING_UP[view.owning_up]
    elif view.regret and not view.running:
        owning_up = "says that it could not answer"
    return {
        ENDED: view.headline,
        PATTERN: view.pattern.replace("_", " "),
        "Model": model_words(view.model),
        "Limit": limit,
        "Made to fail": ", ".join(map(fault_words, view.faults)) or "nothing",
        "Seconds": seconds,
        "First words": first_words,
        "Tokens": tokens,
        "Cost": view.cost_words,
        SAYS: owning_up,
    }


def compare(turns: Mapping[str, TurnView]) -> dict[str, tuple[LostPart, ...]]:
    """Returns what each turn that has ended lost of its message; both mappings are by label.

    Lost are the parts that the turn itself knows of, failed or left out, and beside them the
    sub-agents that turns of the same message show to have a part in it and that this one did not ask.
    """
    by_question: dict[str, list[tuple[TurnView, RoutingDecision]]] = {}
    for view in turns.values():
        if view.routing is not None and not view.running:
            by_question.setdefault(view.question, []).append((view, view.routing))
    lost_parts: dict[str, tuple[LostPart, ...]] = {}
    for name, view in turns.items():
        if view.routing is not None and not view.running:
            message = _parts_of_message(by_question[view.question])
            parts = _lost_parts(view, view.routing, message)
            if not parts and view.status == "failed":
                parts.append(LostPart(name="the whole answer", reason=view.headline.lower()))
            lost_parts[name] = tuple(parts)
    return lost_parts


def _lost_parts(
    view: TurnView, routing: RoutingDecision, message: Mapping[str, str]
) -> list[LostPart]:
    """Returns what one turn lost; `message` has the words of each sub-agent's part in it."""
    owed: set[str] = set()
    for acknowledged in view.bodies(Acknowledged):
        owed.update(acknowledged.owed)

    def part_of(agent: str, reason: str) -> LostPart:
        words = message.get(agent, "")
        return LostPart(name=label(agent), words=words, reason=reason, silent=agent not in owed)

    parts: list[LostPart] = []
    for step in view.taken_on:
        if step.state not in ("ok", "partial"):
            parts.append(part_of(step.agent, step.verdict))
    for agent in view.parts.over_cap:
        parts.append(part_of(agent, OVER_CAP))
    # A part that is left out has the words of the message and no sub-agent. Where another turn sent
    # these words to a sub-agent, that one names the part.
    left_out = view.parts.left_out
    agents = {words: agent for agent, words in message.items() if words}
    named_agents = {*routing.invoked, *view.parts.over_cap}
    for name, words in zip(left_out.names, left_out.parts, strict=False):
        agent = agents.get(words)
        silent = name not in owed
        if agent is None:
            parts.append(LostPart(name=name, silent=silent))
        else:
            named_agents.add(agent)
            parts.append(LostPart(name=label(agent), words=words, silent=silent))
    unknown_agents = [agent for agent in message if agent not in named_agents]
    for agent in unknown_agents:
        words = message[agent]
        parts.append(LostPart(name=label(agent), words=words, reason=SHOWN_BY_OTHERS, silent=True))
    if left_out.unnamed and not unknown_agents:
        name = left_out.names[-1]
        parts.append(LostPart(name=name, silent=name not in owed))
    return parts


def _parts_of_message(turns: Sequence[tuple[TurnView, RoutingDecision]]) -> dict[str, str]:
    """Returns each sub-agent that has a part in one message, with the words of that part where they
    are known.

    It was asked by half of the turns, or it was sent some words of the message that no sub-agent
    asked more often was sent.
    """
    counts = Counter[str]()
    for _, routing in turns:
        counts.update(list(dict.fromkeys((*routing.invoked, *routing.dropped))))
    views = [view for view, _ in turns]
    parts: dict[str, str] = {}
    for agent, count in counts.most_common():
        words = _words(agent, views)
        # A sub-agent that one turn of many asked may be that turn's mistake: it counts with words of its own alone.
        is_new_part = bool(words) and words not in parts.values()
        asked_by_half = not words and 2 * count >= len(turns)
        if is_new_part or asked_by_half:
            parts[agent] = words
    question = views[0].question
    return dict(sorted(parts.items(), key=lambda part: question.find(part[1])))


def _words(agent: str, views: Sequence[TurnView]) -> str:
    """Returns the shortest part of the message that a turn sent to an agent; empty where every turn
    sent it the whole."""
    parts: list[str] = []
    for view in views:
        for step in view.steps:
            if step.agent == agent and step.query != view.question and step.query in view.question:
                parts.append(step.query)
    return min(parts, key=len, default="")


Deed = StepState | Literal["left out"]
_DEEDS: dict[Deed, tuple[str, str]] = {
    "left out": ("was left out", "were left out"),
    "ok": ("answered", "answered"),
    "partial": ("answered in part", "answered in part"),
    "waiting": ("waits for your answer", "wait for your answer"),
    "stopped": ("was stopped", "were stopped"),
    "failed": ("failed", "failed"),
    "running": ("is at work", "are at work"),
}
"""How a sub-agent stands in a turn -> its words for one and for several. Of a sub-agent that has several parts of a
turn the last of these counts."""


def asked_sentence(turns: Mapping[str, TurnView]) -> str:
    """Says which sub-agents were asked, and in how many of the turns each of them answered or not.

    Nothing for a single turn, for turns of several questions, and for plans, whose pages speak of their steps.
    """
    views = [view for view in turns.values() if not view.is_plan]
    if len(views) < 2 or len({view.question for view in views}) > 1:
        return ""
    counts: dict[str, Counter[Deed]] = {}
    unasked = 0
    for view in views:
        deeds = _deeds(view)
        for agent, deed in deeds.items():
            counts.setdefault(agent, Counter())[deed] += 1
        unasked += not deeds and not view.running
    agents_alike: dict[tuple[tuple[Deed, int], ...], list[str]] = {}
    for agent, deeds in counts.items():
        agents_alike.setdefault(tuple(deeds.most_common()), []).append(label(agent))
    clauses: list[str] = []
    for deeds, agents in agents_alike.items():
        of_agents = [
            f"{_DEEDS[deed][len(agents) > 1]} in {_share(count, len(views))}"
            for deed, count in deeds
        ]
        clauses.append(f"{enumeration(agents)} {enumeration(of_agents)}")
    if unasked and clauses:
        clauses.append(f"{many(unasked, 'way')} asked none")
    return f"Of the sub-agents, {'; '.join(clauses)}." if clauses else ""


def _deeds(view: TurnView) -> dict[str, Deed]:
    """Returns how each sub-agent that a turn asked, or left out, stands in it."""
    deeds: dict[str, Deed] = dict.fromkeys(view.over_cap, "left out")
    # A monolith does the work of its parts alone: none of them was asked.
    steps = view.taken_on if view.steps else ()
    for state in _DEEDS:
        for step in steps:
            if step.state == state:
                deeds[step.agent] = step.state
    return deeds


def _share(count: int, total: int) -> str:
    if count < total:
        return f"{count} of {total}"
    return "both" if total == 2 else f"all {total}"


def losses_html(
    lost: Mapping[str, tuple[LostPart, ...]], turns: Mapping[str, TurnView], *, running: bool
) -> str:
    """Returns a line on who was asked, and a paragraph that says which turns lack what, why, and whether their answers
    own up to it; `running`: so far."""
    names: dict[Markup, list[str]] = {}
    complete: list[str] = []
    for name, parts in lost.items():
        if parts:
            names.setdefault(_list(_reasons(parts)), []).append(name)
        else:
            complete.append(name)
    groups = [
        (_names(group, lost), Markup("lack" if len(group) > 1 else "lacks"), what)
        for what, group in names.items()
    ]
    untouched = untouched_turns(turns)
    ended = [name for name, view in turns.items() if not view.running]
    return render(
        "losses",
        asked=asked_sentence(turns),
        groups=groups,
        complete=_names(complete, lost) if complete else "",
        several=len(complete) > 1,
        untouched=_list(map(_bold, untouched)) if untouched else "",
        touched_count=len(ended) - len(untouched),
        ended_count=len(ended),
        working=len(turns) - len(ended),
        all=len(turns),
        broken=_broken(turns),
        running=running,
    )


def _names(group: Sequence[str], lost: Mapping[str, object]) -> Markup:
    """Returns the names of turns; how many they are, where these are most of many."""
    if len(group) > 3 and len(group) < len(lost):
        return Markup("<b>{} of {}</b>").format(len(group), len(lost))
    if len(group) > 3:
        return Markup("<b>All {}</b>").format(len(group))
    return _list(map(_bold, group))


def _bold(name: str) -> Markup:
    return Markup("<b>{}</b>").format(name)


def untouched_turns(turns: Mapping[str, TurnView]) -> list[str]:
    """Returns the turns that lack nothing and in which a fault had no part: the agent that it is of was not asked."""
    names: list[str] = []
    for name, view in turns.items():
        faults = view.wanted_faults
        had_part = any(fault.was_asked or fault.has_cost for fault in faults)
        # A service fails whoever asks it: what lacks something was not spared.
        if faults and view.parts.is_complete and not (view.running or had_part):
            names.append(name)
    return names if len(names) < len(turns) else []


def _broken(turns: Mapping[str, TurnView]) -> str:
    """Returns the agents that were made to fail in any of these turns."""
    agents: dict[str, None] = {}
    for view in turns.values():
        for fault in view.wanted_faults:
            agents[label(fault.agent)] = None
    return enumeration(list(agents))


def _reasons(parts: Sequence[LostPart]) -> list[Markup]:
    """Returns the parts that were lost for the same reason together: what is missing, and whose it was."""
    lost: dict[tuple[str, bool], list[LostPart]] = {}
    for part in parts:
        lost.setdefault((part.reason, part.silent), []).append(part)
    clauses: list[Markup] = []
    for (reason, silent), alike in lost.items():
        missing = _list(f"“{part.words}”" if part.words else part.name for part in alike)
        agents = [part.name for part in alike if part.words]
        why = escape(": ".join(filter(None, (enumeration(agents), reason))))
        if reason in (UNASKED, SHOWN_BY_OTHERS):
            why = escape(reason)
        if silent:
            why += Markup(", <em>and does not say so</em>")
        clauses.append(Markup("{} ({})").format(missing, why))
    return clauses


def _list(items: Iterable[str]) -> Markup:
    *first, last = map(escape, items)
    if first:
        return Markup("{} and {}").format(Markup(", ").join(first), last)
    return last
