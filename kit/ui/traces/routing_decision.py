"""The head of a trace: the sub-agents that were asked and why, whose data was read, and how the
answer owned up to failures."""

from collections.abc import Iterable
from html import escape

from kit.core.bodies.call import Envelope, ToolEnded
from kit.core.bodies.guard import AccessDenied, CallDropped, GuardActed
from kit.core.outcome import CapBehavior
from kit.ui.shared.table import row_html, table_html
from kit.ui.shared.turn_view import TONES, Step, TurnView
from kit.ui.shared.wording import label, tag_html

_CAP: dict[CapBehavior, str] = {"within": "good", "at": "good", "over": "warn"}
_PATHS = {
    "composed": "The model's own words owned up to it.",
    "recomposed": "The first answer did not own up to it, so it was written again.",
    "appended": "The model did not own up to it twice, so a fixed sentence was put under its answer.",
    "rescued": "The model's answer could not be used, so fixed words stand in its place.",
}


def decision_html(view: TurnView) -> str:
    """Returns the three blocks as HTML; every word of a model, a tool or a person in it is escaped."""
    blocks = (
        ("Routing", _routing(view)),
        ("Whose data", _principal(view)),
        ("Owning up", _acknowledgement(view)),
    )
    return (
        '<div class="decision">'
        + "".join(f"<section><h3>{name}</h3>{body}</section>" for name, body in blocks)
        + "</div>"
    )


def _routing(view: TurnView) -> str:
    refusals = map(_refusal_row, view.bodies(CallDropped, AccessDenied))
    rows = [*map(_step_row, view.steps), *refusals, *map(_unasked_row, view.parts.left_out.names)]
    acts = "".join(f"<li>{words}</li>" for words in _acts(view))
    table = table_html("Sub-agents", rows, ("Asked", "With", "Result", "Time"))
    return (
        _head(view)
        + (table if rows else f"<p>{_alone(view)}</p>")
        + (f"<ul>{acts}</ul>" if acts else "")
    )


def _alone(view: TurnView) -> str:
    if view.status in ("ok", "running"):
        return "Answered without asking a sub-agent."
    return "It ended before anybody was asked."


def _head(view: TurnView) -> str:
    routing = view.routing
    if routing is None:
        return ""
    if view.cap_words:
        cap = tag_html(view.cap_words, _CAP[routing.cap_behavior])
    else:
        cap = ""
    calls = view.call_words
    if calls and routing.rounds > 1:
        calls += f" in {routing.rounds} rounds"
    if calls:
        calls_tag = tag_html(calls)
    else:
        calls_tag = ""
    pattern = tag_html("pattern: " + routing.pattern)
    return f"<p>{calls_tag}{cap}{pattern}</p>"


def _step_row(step: Step) -> str:
    result = tag_html(step.verdict, TONES[step.state])
    seconds = step.seconds(step.end or step.start)
    return row_html(step.label, escape(step.query), result, f"{seconds:.2f} s")


def _refusal_row(body: CallDropped | AccessDenied) -> str:
    if isinstance(body, AccessDenied):
        tag = tag_html(f"{body.what} {body.name} refused: {body.because.replace('_', ' ')}", "bad")
    else:
        tag = tag_html(
            "never ran: "
            + ("over the limit" if body.reason == "over_cap" else f"{body.guard or 'a'} guard"),
            "warn",
        )
    return row_html(label(body.agent), "", tag, "–")


def _unasked_row(name: str) -> str:
    tag = tag_html("left out: nobody was asked", "warn")
    return f"<tr><th>{escape(name)}</th><td></td><td>{tag}</td><td>–</td></tr>"


def _acts(view: TurnView) -> Iterable[str]:
    for act in view.bodies(GuardActed):
        if act.agent:
            about = f" on {escape(label(act.agent).lower())}"
        else:
            about = ""
        yield f"<b>{escape(act.guard)} guard</b> {escape(act.action.replace('_', ' '))}{about}: {escape(act.reason)}"


def _principal(view: TurnView) -> str:
    replies = view.bodies(Envelope)
    if replies:
        checked = ", checked on every reply"
    else:
        checked = ""
    if view.principal:
        principal = f"<p>For <b>{escape(str(view.principal))}</b>{checked}.</p>"
    else:
        principal = ""
    if not replies:
        if view.bodies(ToolEnded):
            nothing = "No reply of a tool says whose data it is."
        else:
            nothing = "No data was fetched."
        return f"{principal}<p>{nothing}</p>"
    return principal + table_html("Replies", map(_reply, replies))


def _reply(reply: Envelope) -> str:
    if reply.principal_verified:
        check = tag_html("verified", "good")
    else:
        check = tag_html("blocked", "bad")
    tone = {"ok": "", "partial": "warn"}.get(reply.status, "bad")
    if reply.version_ok:
        skew = ""
    else:
        skew = tag_html(f"version {reply.version}", "bad")
    source = f"{reply.domain_type} · {reply.enricher_id}".replace("_", " ")
    return row_html(label(reply.agent), escape(source), tag_html(reply.status, tone) + skew, check)


def _acknowledgement(view: TurnView) -> str:
    last = view.owned_up
    if last is None:
        if view.status == "running":
            return "<p>Not known yet.</p>"
        match view.owning_up:
            case "nothing_owed":
                return "<p>Nothing was owed: every part was answered.</p>"
            case "unsaid":
                tags = "".join(tag_html(name, "warn") for name in view.skipped)
                return f"<p>Owed for {tags or 'a part'}</p><p>The answer does not say so.</p>"
            case _:
                return "<p>The turn ended without an answer.</p>"
    unasked = view.parts.left_out.names
    tags = "".join(tag_html(name if name in unasked else label(name), "warn") for name in last.owed)
    if last.path in ("composed", "recomposed"):
        tone = "good"
    else:
        tone = "warn"
    return f"<p>Owed for {tags}</p><p>{tag_html(last.path, tone)} {_PATHS[last.path]}</p>"
