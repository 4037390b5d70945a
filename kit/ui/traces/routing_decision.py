"""The head of a trace: the sub-agents that were asked and why, whose data was read, and how the
answer owned up to failures."""

from collections.abc import Iterable

from markupsafe import Markup

from kit.core.bodies.call import Envelope, ToolEnded
from kit.core.bodies.guard import AccessDenied, CallDropped, GuardActed
from kit.core.bodies.speech import Acknowledged
from kit.core.outcome import CapBehavior
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.template import render
from kit.ui.shared.turn_view import TONES, Step, TurnView
from kit.ui.shared.wording import label

Row = tuple[str, str, Tag, str]
_CAP: dict[CapBehavior, Tone] = {"within": "good", "at": "good", "over": "warn"}
_REPLY_TONES: dict[str, Tone] = {"ok": "", "partial": "warn"}
_PATHS = {
    "composed": "Yes, in its own words.",
    "recomposed": "Yes. The first answer did not, so it was written again.",
    "appended": "Yes. Twice it did not, so a fixed sentence was put under it.",
    "rescued": "Yes. The answer could not be used, so fixed words stand in its place.",
}


def decision_html(view: TurnView) -> str:
    """Returns the three blocks as HTML."""
    rows: list[Row] = []
    rows += map(_step_row, view.steps)
    rows += map(_refusal_row, view.bodies(CallDropped, AccessDenied))
    for name in view.parts.left_out.names:
        rows.append((name, "", Tag(text="left out: nobody was asked", tone="warn"), "–"))
    return render(
        "decision",
        view=view,
        tags=_head(view),
        rows=rows,
        acts=view.bodies(GuardActed),
        replies=list(map(_reply_row, view.bodies(Envelope))),
        looked_up=bool(view.bodies(ToolEnded)),
        **_owning_up(view, view.owned_up),
    )


def _head(view: TurnView) -> list[Tag]:
    routing = view.routing
    if routing is None:
        return []
    tags: list[Tag] = []
    calls = view.call_words
    if calls and routing.rounds > 1:
        calls += f" in {routing.rounds} rounds"
    if calls:
        tags.append(Tag(text=calls))
    if view.cap_words:
        tags.append(Tag(text=view.cap_words, tone=_CAP[routing.cap_behavior]))
    tags.append(Tag(text=f"pattern: {routing.pattern}"))
    return tags


def _step_row(step: Step) -> Row:
    result = Tag(text=step.verdict, tone=TONES[step.state])
    return step.label, step.query, result, f"{step.seconds(step.end or step.start):.2f} s"


def _refusal_row(body: CallDropped | AccessDenied) -> Row:
    if isinstance(body, AccessDenied):
        words = f"{body.what} {body.name} refused: {body.because.replace('_', ' ')}"
        tag = Tag(text=words, tone="bad")
    elif body.reason == "over_cap":
        tag = Tag(text="never ran: over the limit", tone="warn")
    else:
        tag = Tag(text=f"never ran: {body.guard or 'a'} guard", tone="warn")
    return label(body.agent), "", tag, "–"


def _reply_row(reply: Envelope) -> tuple[str, str, Markup, Tag]:
    check = Tag(text="blocked", tone="bad")
    if reply.principal_verified:
        check = Tag(text="verified", tone="good")
    words = "complete" if reply.status == "ok" else reply.status
    status = [Tag(text=words, tone=_REPLY_TONES.get(reply.status, "bad"))]
    if not reply.version_ok:
        status.append(Tag(text=f"version {reply.version}", tone="bad"))
    source = f"{reply.domain_type} · {reply.enricher_id}".replace("_", " ")
    return label(reply.agent), source, Markup("").join(status), check


def _owning_up(view: TurnView, acknowledged: Acknowledged | None) -> dict[str, object]:
    """Returns the last block: the parts that were `owed`, and whether the answer says so."""
    if acknowledged is not None:
        # A part that nobody was asked about has the words of the message, the others are agents.
        parts = view.parts.left_out.names
        names = [name if name in parts else label(name) for name in acknowledged.owed]
        return {"owed": _tags(names), "owning_up": _PATHS[acknowledged.path]}
    if view.status == "running":
        sentence = "Not known yet."
    elif view.owning_up == "nothing_owed":
        sentence = "Nothing is missing: every part was answered."
    elif view.owning_up == "unsaid":
        owed = _tags(view.skipped) or ["a part"]
        return {"owed": owed, "owning_up": "No, it does not."}
    else:
        sentence = "The turn ended without an answer."
    return {"owed": (), "owning_up": sentence}


def _tags(names: Iterable[str]) -> list[Tag]:
    return [Tag(text=name, tone="warn") for name in names]
