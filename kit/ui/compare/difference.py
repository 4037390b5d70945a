"""What became of turns that stand beside each other, and what differs between them: read from their events, never
from their texts."""

from collections.abc import Mapping

from markupsafe import Markup, escape

from kit.core.bodies.turn import TurnStarted
from kit.core.display.count import enumeration
from kit.ui.shared.tag import Tag
from kit.ui.shared.template import render, table_html
from kit.ui.shared.turn_facts import fault_words, headline
from kit.ui.shared.turn_sentence import short_sentence, turn_sentence
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import model_words, simulated_words

UNKNOWN = "–"
PATTERN = "Pattern"
ENDED = "How it ended"
FEW = 3
"""Turns that are told apart by their names."""
NO_WINNER = (
    "It did not ask whoever was made to fail, so nothing was broken, and it is no fair winner."
)
NOTHING = "nothing"
"""Says something only beside other figures."""
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
        elif text not in (UNKNOWN, NOTHING):
            alike.append(f"{head.lower()} ({text})")
    lines: list[list[str | Tag]] = []
    for name, figures in rows.items():
        view = turns[name]
        row: list[str | Tag] = [_way(name, view)]
        for head in differing:
            row.append(figures[head])
        if ENDED in differing:
            row[1 + differing.index(ENDED)] = headline(view)
        lines.append(row)
    table = table_html("What differs", lines, ("Way", *differing), kind="differences", stacks=True)
    summary = simulated_words(view.model for view in turns.values())
    if alike:
        summary = f"The same in all: {escape(enumeration(alike))}. {summary}"
    return f'{table}<p class="same">{summary}</p>'


def _way(name: str, view: TurnView) -> Markup:
    """Returns the name of a turn, and in a few words what its pattern is."""
    if view.pattern not in WAYS:
        return escape(name)
    return Markup("{}<small>{}</small>").format(name, WAYS[view.pattern])


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
    return {
        ENDED: view.headline,
        PATTERN: view.pattern.replace("_", " "),
        "Model": model_words(view.model),
        "Limit": limit,
        "Made to fail": ", ".join(map(fault_words, view.faults)) or NOTHING,
        "Seconds": seconds,
        "First words": first_words,
        "Tokens": tokens,
        "Cost": view.cost_words,
    }


def outcomes_html(turns: Mapping[str, TurnView]) -> str:
    """Returns what became of each turn, in the words of its own page; of many turns in fewer words, by which those
    that came to the same stand together.

    `turns` are by label.
    """
    names: dict[str, list[str]] = {}
    untouched = untouched_turns(turns)
    for name, view in turns.items():
        # A turn that asked nobody, such as a monolith's, has no sentence of sub-agents.
        words = turn_sentence(view)
        if not words or len(turns) > FEW:
            words = short_sentence(view)
        if name in untouched:
            words += f" {NO_WINNER}"
        names.setdefault(words, []).append(name)
    rows: list[tuple[str, str]] = []
    for words, group in names.items():
        who = enumeration(group)
        if len(group) > FEW:
            who = f"{len(group)} of {len(turns)}"
        rows.append((who, words))
    return render("outcomes", rows=rows)


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
