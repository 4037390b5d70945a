"""A turn on a terminal: preamble, a line for each step as it happens, the answer as it streams."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TextIO

from kit.core.bodies.call import AgentEnded, AgentStarted, AnswerChosen
from kit.core.bodies.guard import CallDropped
from kit.core.bodies.speech import StatusLine, Text, TextReplaced
from kit.core.bodies.turn import Completed, PlanTaken, Routing
from kit.core.card import AgentCard
from kit.core.display.agent_name import words_of_id
from kit.core.display.turn_parts import NO_PARTS, agents_asked, ending_words, turn_parts
from kit.core.event import Event
from kit.core.language.controls import without_controls
from kit.core.outcome import Failure, Outcome, RoutingDecision
from kit.runtime.handle import Reply


class Story:
    """Writes events to a stream in the order they happen; raw reasons stay out of it."""

    def __init__(
        self, out: TextIO, model: str, cards: Mapping[str, AgentCard] = MappingProxyType({})
    ):
        """`cards` of the deck say how its agents are called; other agents have the words of their ids."""
        self._out = out
        self._cards = cards
        self._model = model
        self._speaking: str | None = None
        self._text = ""
        self._spans: set[str] = set()
        self._agents: list[str] = []
        self._parts = NO_PARTS

    def tell(self, event: Event) -> None:
        match event.body:
            case Text(channel=channel, text=text):
                self._speak(channel, text)
            case TextReplaced(channel="answer", text=text):
                self._correct(text)
            case AgentStarted(agent=agent):
                self._begin(agent, event)
            case StatusLine() | PlanTaken() as body:
                self._line(f"  · {self._note(body)}")
            case AgentEnded(agent=agent, outcome=outcome):
                word = _outcome_word(outcome)
                self._line(
                    f"{self._margin(event)}· {self._label_of(agent)}: {word} ({event.at:.1f} s)"
                )
            case AnswerChosen(agent=agent, policy=policy, winner=winner, because=because):
                self._line(
                    f"  · {self._label_of(agent)}: {policy}, {self._label_of(winner or 'nobody')}, {because}"
                )
            case CallDropped(agent=agent, reason="over_cap"):
                self._line(f"  · {self._label_of(agent)}: left out, over the cap")
            case Routing(decision=decision):
                self._route(decision)
            case Completed() as body:
                self._end(body, event.at)
            case _:
                pass

    def _begin(self, agent: str, event: Event) -> None:
        self._line(f"{self._margin(event)}· {self._label_of(agent)}: asked")
        # Who was asked by a sub-agent is shown below it, and not among those whom the turn asked.
        if event.parent_span_id not in self._spans:
            self._agents.append(agent)
        self._spans.add(event.span_id)

    def _correct(self, text: str) -> None:
        self._line("(corrected answer)")
        self._text = ""
        self._speak("answer", text)

    def _route(self, decision: RoutingDecision) -> None:
        self._parts = turn_parts(decision)
        names = ", ".join(map(self._label_of, agents_asked(self._agents, decision)))
        left_out = [*map(self._label_of, self._parts.over_cap), *self._parts.left_out.names]
        line = f"  asked {names or 'nobody'}"
        if left_out:
            line += f"; left out {', '.join(left_out)}"
        self._line(line)

    def _end(self, body: Completed, seconds: float) -> None:
        ending = ending_words(body.status, self._parts)
        line = f"  {ending} after {seconds:.1f} s, {self._model}"
        if not body.saved:
            line += "; not saved"
        self._line(line)

    def _label_of(self, agent: str) -> str:
        card = self._cards.get(agent)
        return words_of_id(agent) if card is None else card.label

    def _note(self, body: StatusLine | PlanTaken) -> str:
        if isinstance(body, PlanTaken):
            # What `resume` takes.
            return body.plan_id
        if body.agent:
            return f"{self._label_of(body.agent)}: {body.text}"
        return body.text

    def _margin(self, event: Event) -> str:
        if event.parent_span_id in self._spans:
            return "    "
        return "  "

    def _speak(self, channel: str, text: str) -> None:
        if self._speaking != channel:
            self._break()
            self._out.write("\n" if channel == "answer" else "")
            self._speaking = channel
        # What reaches a turn was scrubbed where it entered; a piece may still end in half a sequence.
        self._out.write(without_controls(text))
        self._text = text
        self._out.flush()

    def _line(self, text: str) -> None:
        self._break()
        self._out.write(without_controls(text) + "\n")
        self._out.flush()

    def _break(self) -> None:
        if self._speaking is not None:
            self._out.write("" if self._text.endswith("\n") else "\n")
            self._out.write("\n" if self._speaking == "answer" else "")
            self._speaking = None


def _outcome_word(outcome: Outcome) -> str:
    if not isinstance(outcome, Failure):
        return "done"
    stops = {"cancelled": "stopped", "paused": "waits for you"}
    return stops.get(outcome.reason, "could not answer")


def reply_line(reply: Reply) -> dict[str, object]:
    """Returns a reply as the last line of `ask --json`."""
    outcomes: list[dict[str, object]] = []
    for outcome in reply.outcomes:
        line: dict[str, object] = {"agent": outcome.agent, "ok": outcome.kind == "answer"}
        if outcome.kind == "failure":
            line["reason"] = outcome.reason
        outcomes.append(line)
    parts = reply.parts
    return {
        "kind": "reply",
        "turn_id": reply.turn_id,
        "status": reply.status,
        "ending": ending_words(reply.status, parts),
        "parts": {
            "total": parts.total,
            "asked": parts.asked,
            "answered": parts.answered,
            "partly": parts.partly,
            "failed": parts.failed,
            "owed": [*parts.over_cap, *parts.left_out.names],
        },
        "plan": reply.plan.model_dump(mode="json", exclude={"kind"}) if reply.plan else None,
        "saved": reply.saved,
        "truncated": reply.truncated,
        "outcomes": outcomes,
        "routing": reply.routing.model_dump(mode="json"),
        "usage": reply.usage.model_dump(mode="json"),
        "preamble": reply.preamble,
        "text": reply.text,
    }
