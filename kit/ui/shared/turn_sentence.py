"""What became of a turn in a few plain words: who answered, who failed and why, and what the answer lacks."""

from collections.abc import Sequence

from kit.core.display.count import enumeration
from kit.ui.shared.turn_view import VERDICTS, Step, TurnView

LONGEST = 80
"""Characters of a part of the message that are quoted."""


def turn_sentence(view: TurnView) -> str:
    """Returns plain text; nothing for a turn that asked nobody, and for a plan, whose page speaks of its steps."""
    if view.is_plan or not (view.taken_on or view.skipped):
        return ""
    answered: list[str] = []
    at_work: list[Step] = []
    losses: list[str] = []
    for step in view.taken_on:
        if step.state == "running":
            at_work.append(step)
        elif step.state == "ok" and not step.note:
            answered.append(step.label)
        else:
            losses.append(_loss(step, view))
    sentences: list[str] = []
    if answered:
        sentences.append(f"{enumeration(answered)} {_answered(answered, view)}.")
    sentences += losses
    if at_work:
        sentences.append(_work(at_work, view))
        if not losses:
            sentences.append("None has failed yet.")
    if view.skipped:
        verb = "was" if len(view.skipped) == 1 else "were"
        sentences.append(f"{enumeration(view.skipped)} {verb} left out.")
    sentences.append(owning_up_sentence(view))
    return " ".join(filter(None, sentences))


def _answered(names: Sequence[str], view: TurnView) -> str:
    if not view.running:
        return "answered"
    return "has answered" if len(names) == 1 else "have answered"


def _work(steps: Sequence[Step], view: TurnView) -> str:
    names: list[str] = []
    for step in steps:
        names.append(f"{step.label}{' (broken on purpose)' if _is_broken(step, view) else ''}")
    if len(steps) > 1:
        return f"{enumeration(names)} are at work."
    missing = _part(steps[0], view, " on {}, which is still missing", "")
    return f"{names[0]} is at work{missing}."


def _is_broken(step: Step, view: TurnView) -> bool:
    return any(wanted.agent == step.agent for wanted in view.wanted_faults)


def owning_up_sentence(view: TurnView) -> str:
    """Says whether the answer owns up to what it lacks; nothing where that is not known."""
    match view.owning_up:
        case None:
            return ""
        case "nothing_owed":
            return "No part that was counted is missing."
        case "unsaid":
            return "The answer does not say so."
        case _:
            return "The answer says so."


def part_words(step: Step, view: TurnView) -> str:
    """Returns the part of the message that a sub-agent was asked, quoted; nothing where it got all of it."""
    query = " ".join(step.query.split())
    if not query or query == " ".join(view.question.split()) or len(query) > LONGEST:
        return ""
    return f"“{query}”"


def _part(step: Step, view: TurnView, words: str, otherwise: str) -> str:
    part = part_words(step, view)
    return words.format(part) if part else otherwise


def _loss(step: Step, view: TurnView) -> str:
    """Says of a sub-agent that gave less than an answer why, and what is missing for it."""
    if step.state == "waiting":
        return f"{step.label} {step.note}."
    if step.state in ("stopped", "failed") and step.open_acts:
        part = part_words(step, view) or "it"
        return (
            f"{step.label} broke off while doing something: whether {part} was done is not known."
        )
    if step.state in ("stopped", "failed") and step.has_acted:
        part = _part(step, view, "for {} ", "")
        return f"{step.label} did something {part}and broke off before its end."
    why = step.note
    if _is_broken(step, view):
        why = ", ".join(filter(None, (why, "broken on purpose")))
    verb = "was stopped" if step.state == "stopped" else VERDICTS[step.state]
    sentence = f"{step.label} {verb}"
    if why:
        sentence += f" ({why})"
    if step.state in ("ok", "partial"):
        return f"{sentence}."
    return f"{sentence}: {_part(step, view, '{} is missing', 'its part is missing')}."
