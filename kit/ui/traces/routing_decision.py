"""The head of a trace: the sub-agents that were asked and why, whose data was read, and how the
answer owned up to failures."""

from html import escape

from kit.core.bodies.call import Envelope, ToolEnded
from kit.core.bodies.guard import AccessDenied, CallDropped, GuardActed
from kit.core.outcome import CapBehavior
from kit.ui.shared.table import row_html, table_html
from kit.ui.shared.turn_view import TONES, Step, TurnView
from kit.ui.shared.wording import Tone, label, tag_html

_CAP: dict[CapBehavior, Tone] = {"within": "good", "at": "good", "over": "warn"}
_REPLY_TONES: dict[str, Tone] = {"ok": "", "partial": "warn"}
_PATHS = {
    "composed": "The model's own words owned up to it.",
    "recomposed": "The first answer did not own up to it, so it was written again.",
    "appended": "The model did not own up to it twice, so a fixed sentence was put under its answer.",
    "rescued": "The model's answer could not be used, so fixed words stand in its place.",
}


def decision_html(view: TurnView) -> str:
    """Returns the three blocks as HTML; every word of a model, a tool or a person in it is escaped."""
    blocks = {
        "Routing": _routing(view),
        "Whose data": _principal(view),
        "Owning up": _acknowledgement(view),
    }
    html = ""
    for name, body in blocks.items():
        html += f"<section><h3>{name}</h3>{body}</section>"
    return f'<div class="decision">{html}</div>'


def _routing(view: TurnView) -> str:
    refusals = map(_refusal_row, view.bodies(CallDropped, AccessDenied))
    rows = [*map(_step_row, view.steps), *refusals, *map(_unasked_row, view.parts.left_out.names)]
    html = _head(view)
    if rows:
        html += table_html("Sub-agents", rows, ("Asked", "With", "Result", "Time"))
    elif view.status in ("ok", "running"):
        html += "<p>Answered without asking a sub-agent.</p>"
    else:
        html += "<p>It ended before anybody was asked.</p>"
    acts = "".join(map(_act, view.bodies(GuardActed)))
    if acts:
        html += f"<ul>{acts}</ul>"
    return html


def _head(view: TurnView) -> str:
    routing = view.routing
    if routing is None:
        return ""
    tags = ""
    calls = view.call_words
    if calls and routing.rounds > 1:
        calls += f" in {routing.rounds} rounds"
    if calls:
        tags += tag_html(calls)
    if view.cap_words:
        tags += tag_html(view.cap_words, _CAP[routing.cap_behavior])
    tags += tag_html(f"pattern: {routing.pattern}")
    return f"<p>{tags}</p>"


def _step_row(step: Step) -> str:
    result = tag_html(step.verdict, TONES[step.state])
    seconds = step.seconds(step.end or step.start)
    return row_html(step.label, escape(step.query), result, f"{seconds:.2f} s")


def _refusal_row(body: CallDropped | AccessDenied) -> str:
    if isinstance(body, AccessDenied):
        tag = tag_html(f"{body.what} {body.name} refused: {body.because.replace('_', ' ')}", "bad")
    elif body.reason == "over_cap":
        tag = tag_html("never ran: over the limit", "warn")
    else:
        tag = tag_html(f"never ran: {body.guard or 'a'} guard", "warn")
    return row_html(label(body.agent), "", tag, "–")


def _unasked_row(name: str) -> str:
    tag = tag_html("left out: nobody was asked", "warn")
    return f"<tr><th>{escape(name)}</th><td></td><td>{tag}</td><td>–</td></tr>"


def _act(act: GuardActed) -> str:
    action = escape(act.action.replace("_", " "))
    if act.agent:
        action += f" on {escape(label(act.agent).lower())}"
    return f"<li><b>{escape(act.guard)} guard</b> {action}: {escape(act.reason)}</li>"


def _principal(view: TurnView) -> str:
    replies = view.bodies(Envelope)
    html = ""
    if view.principal:
        html = f"For <b>{escape(str(view.principal))}</b>"
        if replies:
            html += ", checked on every reply"
        html = f"<p>{html}.</p>"
    if replies:
        return html + table_html("Replies", map(_reply, replies))
    if view.bodies(ToolEnded):
        return f"{html}<p>No reply of a tool says whose data it is.</p>"
    return f"{html}<p>No data was fetched.</p>"


def _reply(reply: Envelope) -> str:
    check = tag_html("blocked", "bad")
    if reply.principal_verified:
        check = tag_html("verified", "good")
    status = tag_html(reply.status, _REPLY_TONES.get(reply.status, "bad"))
    if not reply.version_ok:
        status += tag_html(f"version {reply.version}", "bad")
    source = f"{reply.domain_type} · {reply.enricher_id}".replace("_", " ")
    return row_html(label(reply.agent), escape(source), status, check)


def _acknowledgement(view: TurnView) -> str:
    acknowledged = view.owned_up
    if acknowledged is None and view.status == "running":
        return "<p>Not known yet.</p>"
    if acknowledged is None and view.owning_up == "nothing_owed":
        return "<p>Nothing was owed: every part was answered.</p>"
    if acknowledged is None and view.owning_up == "unsaid":
        tags = "".join(tag_html(name, "warn") for name in view.skipped)
        return f"<p>Owed for {tags or 'a part'}</p><p>The answer does not say so.</p>"
    if acknowledged is None:
        return "<p>The turn ended without an answer.</p>"
    tags = ""
    for name in acknowledged.owed:
        # A part that nobody was asked about has the words of the message, the others are agents.
        if name in view.parts.left_out.names:
            tags += tag_html(name, "warn")
        else:
            tags += tag_html(label(name), "warn")
    tone: Tone = "warn"
    if acknowledged.path in ("composed", "recomposed"):
        tone = "good"
    path = tag_html(acknowledged.path, tone)
    return f"<p>Owed for {tags}</p><p>{path} {_PATHS[acknowledged.path]}</p>"
