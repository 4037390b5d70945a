"""The facts of a turn beside its text: which sub-agents were asked, limits, data, guards, time and cost."""

from collections.abc import Iterator

from kit.core.bodies.call import AgentStarted, Envelope, ModelStarted, ToolEnded
from kit.core.bodies.guard import GuardActed, GuardAction
from kit.core.bodies.turn import Fork
from kit.core.display.count import many
from kit.core.display.made_to_fail import WantedFault
from kit.core.display.turn_parts import OwningUp, ending_of
from kit.core.fault import CATALOGUE, Fault
from kit.core.model import OFFLINE
from kit.core.value import Value
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.turn_view import TONES, VERDICTS, TurnView
from kit.ui.shared.wording import (
    STAND_IN_TOKENS,
    cost_in_words,
    is_simulated,
    label,
    model_words,
    tokens_in_words,
)

_GUARDS: dict[GuardAction, str] = {
    "asked_again": "Asked the model again: a part of the message had no call",
    "merged": "Added what it had missed",
    "short": "Went on with a part still missing",
    "rerouted": "Sent it to {agent} instead",
    "dropped": "Left out a call to {agent}",
    "reworded": "Passed on the exact words to {agent}",
    "mended": "Put the text right before it was read",
    "answered": "Answered with fixed words",
}
_BY: dict[tuple[str, GuardAction], str] = {
    ("duplicate", "dropped"): "Made the same request to {agent} only once",
    (
        "overlap",
        "dropped",
    ): "Left out {agent}: the other calls cover the message, and it speaks of nothing in it",
    ("one_at_a_time", "dropped"): "Let {agent} wait: one sub-agent at a time",
    ("no_return", "dropped"): "Did not hand back to {agent}",
    ("echo", "rerouted"): "Sent the short reply to {agent}, whose question it answers",
    ("fastpath", "rerouted"): "Did not let it pass as small talk: {agent} was asked",
    ("acknowledge", "asked_again"): "Had the answer written again: it did not own up to everything",
    ("pictures", "mended"): "Said that no model here can look at the pictures",
    ("danger", "answered"): "Heard of danger to life and said whom to call: nobody was asked",
    ("preamble", "mended"): "Took back an opening line that nobody could know yet",
}
"""Words for an action of one guard, where the words of the action alone do not say enough."""
OWNING_UP: dict[OwningUp, str] = {
    "composed": "in the answer's own words",
    "recomposed": "after the answer was written again",
    "appended": "by a fixed sentence put under it",
    "rescued": "by a fixed answer in place of it",
    "nothing_owed": "no part that was counted is missing",
    "unsaid": "not at all: the answer does not say what it lacks",
}
DIRECT = "nobody: answered directly"
EARLY = "nobody: it ended before anybody was asked"


class Fact(Value):
    """One line of what is known."""

    name: str
    """An id that tests and links can rely on."""
    label: str
    text: str = ""
    tags: tuple[Tag, ...] = ()
    lines: tuple[str, ...] = ()
    value: str = ""
    """The same for a program: ids and figures as the stored events have them."""


def facts(view: TurnView) -> tuple[Fact, ...]:
    """Returns the facts of a turn so far, in the order in which they are read."""
    return tuple(_facts(view))


def fault_words(fault: str) -> str:
    """Returns a fault of a trace in plain words."""
    try:
        known = Fault.from_text(fault)
    except ValueError:
        return fault
    return f"{label(known.where)} {CATALOGUE[known.kind].label}"


def fork_words(fork: Fork) -> str:
    """Returns what is other in a fork, in plain words."""
    changes: list[str] = []
    if fork.model is not None:
        changes.append(f"on {model_words(fork.model)}")
    if fork.pattern is not None:
        changes.append(f"as {label(fork.pattern).lower()}")
    if fork.prompt is not None:
        changes.append(f"with another prompt for {label(fork.prompt)}")
    if fork.faults:
        changes.append(f"broken on purpose: {', '.join(map(fault_words, fork.faults))}")
    elif fork.faults is not None:
        changes.append("nothing broken on purpose")
    return ", ".join(changes) or "nothing changed"


def fault_lines(view: TurnView) -> tuple[str, ...]:
    """Returns a turn's faults in plain words; says of one that was added later when that was, and of
    one that changed nothing that it did not."""
    lines: list[str] = []
    for wanted in view.wanted_faults:
        line = fault_words(wanted.fault)
        if wanted.at is not None:
            line += f", from {wanted.at:.1f} s on"
        if not view.running and _changed_nothing(wanted, view):
            line += " (changed nothing in this turn)"
        lines.append(line)
    return tuple(lines)


def _changed_nothing(wanted: WantedFault, view: TurnView) -> bool:
    """Whether a fault of a turn that is over did not happen, or all that its agent was asked was answered."""
    if not view.bodies(AgentStarted, ModelStarted):
        return False
    if not wanted.was_asked:
        # A service that fails may be asked by somebody else, as in a monolith.
        return bool(wanted.agent) and Fault.from_text(wanted.fault).needs_agent
    steps = [step for step in view.taken_on if step.agent == wanted.agent]
    return bool(steps) and all(step.verdict == VERDICTS["ok"] for step in steps)


def headline(view: TurnView) -> Tag:
    """Returns a tag that says how the turn stands or ended."""
    if view.running:
        return Tag(text="Working", tone="busy")
    ending = ending_of(view.status, view.parts)
    tone: Tone = "warn"
    if ending == "answered":
        tone = "good"
    elif ending in ("nothing", "deadline"):
        tone = "bad"
    return Tag(text=view.headline, tone=tone)


def answer_text(view: TurnView) -> str:
    """Returns what was said to the user: the lead and the answer, else the sentence in place of them."""
    return "\n\n".join(filter(None, (view.lead, view.answer))) or view.regret


def _facts(view: TurnView) -> Iterator[Fact]:
    tags: list[Tag] = []
    agents: dict[str, None] = {}
    for step in view.agent_steps:
        tags.append(Tag(text=step.label, tone=TONES[step.state], why=step.verdict))
        agents[step.agent] = None
    for name in view.skipped:
        tags.append(Tag(text=name, tone="warn", why="left out"))
    if tags:
        ids = ",".join(agents)
        yield Fact(name="agents", label="Asked", tags=tuple(tags), value=ids)
    elif not view.running:
        yield Fact(name="agents", label="Asked", text=DIRECT if view.status == "ok" else EARLY)
    yield from _routing_facts(view)
    yield from _data_facts(view)
    yield from _guard_facts(view)
    yield from _cost_facts(view)
    for fork in view.bodies(Fork):
        calls = [span.is_replay for span in view.trace.spans if span.kind in ("model", "tool")]
        played = sum(calls)
        text = f"{many(played, 'call')} played, {len(calls) - played} made"
        value = f"{played}/{len(calls)}"
        yield Fact(name="fork", label="Forked", text=text, lines=(fork_words(fork),), value=value)
    if view.faults:
        yield Fact(name="faults", label="Broken on purpose", lines=fault_lines(view))


def _routing_facts(view: TurnView) -> Iterator[Fact]:
    routing = view.routing
    if routing is None or not view.cap_words:
        return
    yield Fact(
        name="intents",
        label="Routing",
        text=view.call_words,
        value=f"{routing.reported_intents}/{routing.intent_count}",
    )
    yield Fact(
        name="cap",
        label="Limit",
        text=view.cap_words,
        value=f"{routing.cap_behavior} {routing.cap}",
    )


def _data_facts(view: TurnView) -> Iterator[Fact]:
    verified = 0
    blocked = 0
    for reply in view.bodies(Envelope):
        if reply.principal_verified:
            verified += 1
        else:
            blocked += 1
    tags: list[Tag] = []
    if verified:
        tags.append(Tag(text=f"{verified} verified", tone="good"))
    if blocked:
        why = "a reply was not proven to be this person's"
        tags.append(Tag(text=f"{blocked} blocked", tone="bad", why=why))
    if not tags and (view.running or not view.principal):
        return
    if not tags and view.bodies(ToolEnded):
        tags.append(Tag(text="not checked", why="no reply of a tool says whose data it is"))
    elif not tags:
        tags.append(Tag(text="none was fetched"))
    principal = str(view.principal or "")
    yield Fact(name="principal", label="Data of", text=principal, tags=tuple(tags))


def _guard_facts(view: TurnView) -> Iterator[Fact]:
    acts = dict.fromkeys(map(_act, view.bodies(GuardActed)))
    if acts:
        yield Fact(name="guards", label="Guards", lines=tuple(acts))
    elif not view.running:
        yield Fact(name="guards", label="Guards", text="none had to step in")
    owning_up = view.owning_up
    if owning_up:
        yield Fact(name="acknowledged", label="Said so", text=OWNING_UP[owning_up])


def _act(act: GuardActed) -> str:
    return _BY.get((act.guard, act.action), _GUARDS[act.action]).format(
        agent=label(act.agent).lower()
    )


def _cost_facts(view: TurnView) -> Iterator[Fact]:
    if view.seconds is not None:
        text = f"{view.seconds:.2f} s"
        if view.ttft is not None:
            text += f", first words after {view.ttft:.2f} s"
        yield Fact(name="time", label="Time", text=text)
    usage = view.usage
    if usage:
        yield Fact(name="tokens", label="Tokens", text=tokens_in_words(usage))
        yield Fact(name="cost", label="Cost", text=cost_in_words(usage))
    if is_simulated(view.model) and (view.seconds is not None or view.usage):
        words = "simulated: no language model was asked"
        if view.model == OFFLINE.key:
            words += f", and {STAND_IN_TOKENS}"
        yield Fact(name="simulated", label="Figures", text=words, value=view.model)
    if view.pattern:
        text = f"{view.pattern}, {model_words(view.model)}"
        yield Fact(name="pattern", label="Pattern", text=text)
