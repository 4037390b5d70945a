"""A turn on a terminal: preamble, a line for each step as it happens, the answer as it streams."""

from typing import TextIO

from kit.core.bodies.call import AgentEnded, AgentStarted, AnswerChosen
from kit.core.bodies.guard import CallDropped
from kit.core.bodies.speech import StatusLine, Text, TextReplaced
from kit.core.bodies.turn import Completed, PlanTaken, Routing
from kit.core.display.count import many
from kit.core.event import Event
from kit.core.outcome import Failure
from kit.runtime.handle import Reply


class Story:
    """Writes events to a stream in the order they happen; raw reasons stay out of it."""

    def __init__(self, out: TextIO, model: str):
        self._out, self._model = out, model
        self._speaking: str | None = None
        self._text = ""
        self._spans: set[str] = set()

    def tell(self, event: Event) -> None:
        match event.body:
            case Text(channel=channel, text=text):
                self._speak(channel, text)
            case TextReplaced(channel="answer", text=text):
                self._line("(corrected answer)")
                self._text = ""
                self._speak("answer", text)
            case AgentStarted(agent=agent):
                self._line(f"{self._margin(event)}· {_plain(agent)}: asked")
                self._spans.add(event.span_id)
            case StatusLine() | PlanTaken() as body:
                self._line(f"  · {_note(body)}")
            case AgentEnded(agent=agent, outcome=outcome):
                stops = {"cancelled": "stopped", "paused": "waits for you"}
                word = (
                    stops.get(outcome.reason, "could not answer")
                    if isinstance(outcome, Failure)
                    else "done"
                )
                self._line(f"{self._margin(event)}· {_plain(agent)}: {word} ({event.at:.1f} s)")
            case AnswerChosen(agent=agent, policy=policy, winner=winner, because=because):
                self._line(
                    f"  · {_plain(agent)}: {policy}, {_plain(winner or 'nobody')}, {because}"
                )
            case CallDropped(agent=agent, reason="over_cap"):
                self._line(f"  · {_plain(agent)}: left out, over the cap")
            case Routing(decision=decision):
                names = ", ".join(decision.invoked) or "nobody"
                left_out = "".join(f"; left out {name}" for name in decision.left_out.names)
                cap = f"{decision.cap_behavior} the cap of {decision.cap}"
                intents = many(decision.intent_count, "intent")
                self._line(f"  asked {names}; {intents}, {cap}{left_out}")
            case Completed(status=status, saved=saved):
                self._line(
                    f"  {status} after {event.at:.1f} s, {self._model}"
                    + ("" if saved else "; not saved")
                )
            case _:
                pass

    def _margin(self, event: Event) -> str:
        return "    " if event.parent_span_id in self._spans else "  "

    def _speak(self, channel: str, text: str) -> None:
        if self._speaking != channel:
            self._break()
            self._out.write("\n" if channel == "answer" else "")
            self._speaking = channel
        self._out.write(text)
        self._text = text
        self._out.flush()

    def _line(self, text: str) -> None:
        self._break()
        self._out.write(text + "\n")
        self._out.flush()

    def _break(self) -> None:
        if self._speaking is not None:
            self._out.write("" if self._text.endswith("\n") else "\n")
            self._out.write("\n" if self._speaking == "answer" else "")
            self._speaking = None


def _note(body: StatusLine | PlanTaken) -> str:
    if isinstance(body, PlanTaken):
        return body.plan_id  # what `resume` takes
    return f"{_plain(body.agent)}: {body.text}" if body.agent else body.text


def _plain(agent: str) -> str:
    return agent.replace("_", " ").replace("-", " ")


def reply_line(reply: Reply) -> dict[str, object]:
    """Returns a reply as the last line of `ask --json`."""
    outcomes = [
        {"agent": one.agent, "ok": True}
        if one.kind == "answer"
        else {"agent": one.agent, "ok": False, "reason": one.reason}
        for one in reply.outcomes
    ]
    return {
        "kind": "reply",
        "turn_id": reply.turn_id,
        "status": reply.status,
        "saved": reply.saved,
        "truncated": reply.truncated,
        "outcomes": outcomes,
        "routing": reply.routing.model_dump(mode="json"),
        "usage": reply.usage.model_dump(mode="json"),
        "preamble": reply.preamble,
        "text": reply.text,
    }
