"""The one number that a scene ends on: measured in its own turn, or read from the stored table."""

from kit.compose.page import Scene
from kit.conformance.table import Table
from kit.core.bodies.call import Envelope
from kit.core.display.count import many
from kit.core.fault import CANARY
from kit.core.value import Value
from kit.ui.compare.difference import compare
from kit.ui.compare.others import RESULT
from kit.ui.shared.turn_view import Step, TurnView
from kit.ui.shared.wording import took


class Figure(Value):
    """A number that is read from afar, and what it counts."""

    number: str
    words: str


def figure_of(view: TurnView) -> Figure:
    """Returns the number that says most about a turn that has ended: of data of somebody else, of what was lost, of
    the limit, of the time that working together saved, in this order."""
    blocked = sum(not reply.principal_verified for reply in view.bodies(Envelope))
    if blocked:
        return _of_foreign_data(view, blocked)
    if not view.parts.is_complete:
        return _of_losses(view)
    steps = [step for step in view.taken_on if step.end is not None]
    if len(steps) > 1:
        return _of_time(steps)
    return Figure(number=took(view.ttft or view.seconds or 0.0), words="to the first words")


def _of_foreign_data(view: TurnView, blocked: int) -> Figure:
    # Every payload of somebody else that a service is made to send holds these words: they are looked for in all
    # that the turn logged, what its models were sent and said among it.
    leaks = sum(CANARY in event.body.model_dump_json() for event in view.events)
    verb = "were" if blocked > 1 else "was"
    words = (
        f"replies about somebody else reached a model or the answer. "
        f"{blocked} came in, and {verb} blocked before that."
    )
    return Figure(number=str(leaks), words=words)


def _of_losses(view: TurnView) -> Figure:
    parts = view.parts
    share = f"{parts.answered} of {parts.total} answered"
    (lost_parts,) = compare({"": view}).values()
    silent = sum(part.silent for part in lost_parts)
    if silent:
        words = f"of {len(lost_parts)} lost parts that the answer does not own up to. {share}."
        return Figure(number=str(silent), words=words)
    if parts.failed:
        words = f"parts lost in silence. {share}, and the answer says what is missing."
        return Figure(number="0", words=words)
    noun = "part" if parts.omitted == 1 else "parts"
    words = f"{noun} over the limit: never run, named in the answer, kept in the trace. {share}."
    return Figure(number=str(parts.omitted), words=words)


def _of_time(steps: list[Step]) -> Figure:
    together = max(step.end or 0.0 for step in steps) - min(step.start for step in steps)
    apart = sum((step.end or 0.0) - step.start for step in steps)
    words = (
        f"as fast as one after the other: {many(len(steps), 'agent')} took {took(together)} together, "
        f"and {took(apart)} if you add them up."
    )
    return Figure(number=f"{apart / together:.1f}×", words=words)


def stored_figure() -> Figure:
    """Returns how many plays of the stored table the kit passes, beside the plain loop and the best of the others."""
    table = Table.read(RESULT)
    scores: dict[str, int] = {}
    total = 0
    for system in table.systems:
        scores[system["name"]], total = table.score(system, best=True)
    ours, *others = scores
    best = max(others, key=scores.__getitem__)
    words = (
        f"plays of parallel failure pass here. The best of {len(others)} others, {best}: {scores[best]}; a plain "
        f"loop: {scores['gather loop']}. Stored on {table.content['date']}, each in its best configuration; the "
        "scenarios are by the makers of this kit."
    )
    return Figure(number=f"{scores[ours]} of {total}", words=words)


def scene_of_others(scenes: tuple[Scene, ...]) -> int | None:
    """Returns the number of the scene whose turn is set beside others: the first that breaks a part."""
    for number, scene in enumerate(scenes, 1):
        if scene.faults:
            return number
    return None
