"""Draws one turn in one place of a page, and on later draws only what changed: the same for live and stored turns."""

import re
import time
from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_status_container import StatusContainer

from kit.core.record import TurnStatus
from kit.ui.view import Step, TurnView
from kit.ui.waterfall import waterfall_spec

LONGEST = 1_200
"""Characters of a question that are repeated on the page."""
_STATES = {"running": "running", "ok": "complete", "failed": "error", "stopped": "error"}
_ICONS = {"ok": ":material/check_circle:", "failed": ":material/error:", "stopped": ":material/stop_circle:"}
_COLOURS: dict[TurnStatus, str] = {
    "ok": "green",
    "failed": "red",
    "deadline": "red",
    "cancelled": "orange",
    "interrupted": "orange",
}


def prose(text: str) -> str:
    """Model text as markdown: `$` is money, not mathematics, and no picture is fetched from anywhere."""
    return text.replace("$", r"\$").replace("![", r"!\[")


def literal(text: str) -> str:
    """A person's text, shown as typed: no markdown in it acts."""
    shown = text if len(text) <= LONGEST else text[:LONGEST] + " …"
    return re.sub(r"([\\`*_{}\[\]()#+\-.!~|>$:<&@/])", r"\\\1", shown).replace("\n", "  \n")


@dataclass
class _Box:
    """A step on the page, and how far it has been drawn."""

    body: DeltaGenerator
    status: StatusContainer | None
    """None for a step that had ended when it was first drawn."""
    label: str = ""
    state: str = "running"
    lines: int = 0

    @classmethod
    def open(cls, place: DeltaGenerator, step: Step, now: float) -> "_Box":
        """A new step. `status` can change later but takes Streamlit 50 ms to make, which a long session would feel."""
        label = _step_label(step, now)
        if step.state == "running":
            status = place.status(label, expanded=True, state="running", type="step")
            box = cls(status.container(gap=None), status, label)
        else:
            ended = place.expander(label, expanded=step.state == "failed", icon=_ICONS[step.state], type="step")
            box = cls(ended.container(gap=None), None)
        box.body.caption(f"“{literal(step.query)}”")
        return box

    def draw(self, step: Step, now: float) -> None:
        for line in step.lines[self.lines :]:
            self.body.caption(prose(line))
        self.lines = len(step.lines)
        label = _step_label(step, now)
        if self.status is not None and (label, step.state) != (self.label, self.state):
            self.label, self.state = label, step.state
            self.status.update(label=label, state=_STATES[step.state], expanded=step.state in ("running", "failed"))  # type: ignore[arg-type]


class Canvas:
    """A place for one turn: question, lead, steps, answer, and how it was answered."""

    def __init__(self, question: str):
        with st.chat_message("user", avatar=":material/person:"):
            st.markdown(literal(question))
        with st.chat_message("assistant", avatar=":material/hub:"):
            self._lead = st.empty()
            self._steps = st.container(gap=None)
            self._answer = st.empty()
            self._foot = st.empty()
        self._boxes: list[_Box] = []
        self._shown = {"lead": "", "answer": ""}

    def draw(self, view: TurnView, *, steps: bool = True, again: bool = False) -> None:
        """Brings the place up to date; `steps` is off for turns long past, `again` offers to ask once more."""
        now = view.seconds if view.seconds is not None else max(0.0, time.time() - view.started_at)
        self._say("lead", self._lead, view.lead)
        if steps:
            self._draw_steps(view, now)
        self._say("answer", self._answer, view.answer or view.regret)
        if view.running:
            self._foot.caption(f"{view.headline} · {now:.1f} s")
        else:
            with self._foot.container():
                _ending(view, details=steps, again=again)

    def _say(self, part: str, place: DeltaGenerator, text: str) -> None:
        if text != self._shown[part]:
            self._shown[part] = text
            place.markdown(prose(text))

    def _draw_steps(self, view: TurnView, now: float) -> None:
        self._boxes += [_Box.open(self._steps, step, now) for step in view.steps[len(self._boxes) :]]
        for box, step in zip(self._boxes, view.steps, strict=True):
            box.draw(step, now)


def _step_label(step: Step, now: float) -> str:
    verdict = f": {step.verdict}" if step.note else ""
    verdict = f":red[{verdict}]" if verdict and step.state == "failed" else verdict
    return f"**{step.label}**{verdict} · {step.seconds(now):.1f} s"


def _ending(view: TurnView, *, details: bool, again: bool) -> None:
    colour = "orange" if view.status == "ok" and view.partial else _COLOURS.get(view.status, "gray")
    facts = [f":{colour}-badge[{view.headline}]"]
    if view.routing is not None and view.routing.invoked:
        count = len(view.routing.invoked)
        facts.append(f":gray-badge[{count} sub-agent{'s' if count > 1 else ''}]")
    if view.seconds is not None:
        facts.append(f":gray-badge[{view.seconds:.1f} s]")
    st.markdown(" ".join(facts))
    if again and view.status != "ok":
        st.button("Ask again", icon=":material/refresh:", key=f"again-{view.turn_id}", on_click=partial(ask, view.question))
    if details and view.trace.spans:
        with st.expander("How this was answered", icon=":material/account_tree:"):
            routing, trace = st.tabs(["Routing", "Trace"])
            with routing:
                _routing(view)
            with trace:
                _trace(view)


def ask(question: str) -> None:
    """Has the next run of the page ask this, as if it had been typed."""
    st.session_state["ask"] = question


def _routing(view: TurnView) -> None:
    lines = ["| Sub-agent | Result | Time |", "|:--|:--|--:|"]
    lines += [f"| {step.label} | {step.verdict.capitalize()} | {step.seconds(0.0):.2f} s |" for step in view.steps]
    lines += [f"| {agent} | Left out: too many parts at once | – |" for agent in view.left_out_labels]
    if len(lines) > 2:
        st.markdown("\n".join(lines))
    else:
        st.markdown("Answered without asking a sub-agent.")
    st.caption(" · ".join(facts(view)))


def facts(view: TurnView) -> list[str]:
    """What a turn was and cost, a clause each."""
    said: list[str] = []
    if view.routing is not None and view.routing.intent_count:
        count = view.routing.reported_intents
        said.append(f"{count} intent{'s' if count > 1 else ''}, {view.cap_words}")
    if view.seconds is not None:
        said.append(f"answered in {view.seconds:.2f} s")
    if view.ttft is not None:
        said.append(f"first text after {view.ttft:.2f} s")
    if view.usage is not None:
        said.append(f"{view.usage.input_tokens:,} tokens in, {view.usage.output_tokens:,} out")
        said.append("cost " + view.cost_words.replace("$", r"\$"))
    return said


def _trace(view: TurnView) -> None:
    spans = view.trace.spans
    failed = [span.name for span in spans if span.status == "error"]
    told = f"Waterfall of {len(spans)} spans" + (f"; with errors: {', '.join(failed)}" if failed else "")
    st.vega_lite_chart(
        waterfall_spec(view.trace, dark=st.context.theme.type == "dark"), width="stretch", key=f"trace-{view.turn_id}", alt=told
    )
