"""The head of a trace: a row for each part and for each reply of a service, and the facts that the chat shows too."""

from markupsafe import Markup

from kit.core.bodies.call import Envelope
from kit.core.bodies.guard import AccessDenied, CallDropped
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.template import render
from kit.ui.shared.turn_facts import facts
from kit.ui.shared.turn_view import TONES, Step, TurnView
from kit.ui.shared.wording import label

Row = tuple[str, str, Tag, str]
_REPLY_TONES: dict[str, Tone] = {"ok": "", "partial": "warn"}


def decision_html(view: TurnView) -> str:
    """Returns as HTML a row for each part and for each reply of a service, and the facts of the turn."""
    rows: list[Row] = []
    rows += map(_step_row, view.steps)
    rows += map(_refusal_row, view.bodies(CallDropped, AccessDenied))
    for name in view.parts.left_out.names:
        rows.append((name, "", Tag(text="left out: nobody was asked", tone="warn"), "–"))
    replies = list(map(_reply_row, view.bodies(Envelope)))
    return render("decision", rows=rows, replies=replies, facts=facts(view))


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
