"""A turn that pauses for its user, and the ledger of its acts: what was asked, what was answered,
and what was done, read back from the turn's events."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kit.compose.locale import Locale
from kit.core.bodies.call import ToolEnded
from kit.core.bodies.turn import Act, ActStarted, ApprovalAsked, Resumed
from kit.core.display.agent_name import words_of_id
from kit.core.event import Event
from kit.core.value import new_dict

DECLINED = "This was not done, because you said no."
DONE_BEFORE = "This was done before, is told as it was, and is not done twice: ask for it in full if you want it again."
ASKED_BEFORE = "This still waits for your yes or no, where it was asked."
UNCERTAIN = (
    "Whether this was done is not known: it came to no clear end, and it is not tried again."
)
NOT_BEGUN = "Nothing was done for this: ask for it once more if you want it."
HALF_DONE = "Something was done for this, and then it broke off before its end."
UNKNOWN = ("cancelled", "timeout", "uncertain", "exception")
"""Failures of a tool call that may have done its work all the same: what raised may have acted before it did."""
ActState = Literal["new", "asked", "confirmed", "declined", "started", "done"]
"""How far an act has come; one that a process which has ended left `started` is uncertain."""
Answers = bool | Mapping[str, bool] | None
"""The user's yes or no: to all that the turn asked, or by the key of each question; None where nothing was asked."""


class Paused(BaseException):
    """Ends the work that waits for the user. No `except Exception` takes it for a fault, and
    siblings go on to their ends."""


@dataclass(slots=True)
class LedgerEntry:
    """One act: a call that asks its user first, or must not be made twice."""

    question: ApprovalAsked | None = None
    answer: bool | None = None
    """The user's yes or no."""
    act: Act | None = None
    """What became of it; None where it has not begun."""
    path: str = ""
    """The path of the agent that first asked for it in this turn, or this part of it."""
    tool: str = ""
    """The tool, where it is read from a log."""
    what: str = ""
    """What it does, for a person: the step of a plan that it is made in, else its tool; empty until it is met here."""
    at_work: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by one call at a time: the same one beside it waits for what comes of it."""

    @property
    def state(self) -> ActState:
        if self.act is not None:
            if self.act.text is None:
                return "started"
            return "done"
        if self.answer is not None:
            if self.answer:
                return "confirmed"
            return "declined"
        if self.question is not None:
            return "asked"
        return "new"

    @property
    def has_failed(self) -> bool:
        """Whether it came back without having done anything, as far as its tool says."""
        return self.act is not None and self.act.failure is not None

    def sentence(self, locale: Locale) -> str:
        """Says what became of it, in the language of the session."""
        reservation = UNCERTAIN
        if self.state == "declined":
            reservation = DECLINED
        elif self.state == "done":
            reservation = HALF_DONE
        what = self.what or words_of_id(self.tool)
        return f"{what.rstrip('. ')}: {locale.reservation(reservation)}"


@dataclass(slots=True)
class ActLedger:
    """The acts of a turn, or of a plan in all its turns, by the key of a call: its tool and its arguments.

    Whatever tells a user what was done, or may have been done, reads it here.
    """

    entries: dict[str, LedgerEntry] = field(default_factory=new_dict)
    repeatable: dict[str, LedgerEntry] = field(default_factory=new_dict)
    """Acts of a plan that need no yes and may be made again, by the same keys; no log keeps them."""
    order: dict[str, asyncio.Lock] = field(default_factory=new_dict)
    """Held, by the path of an agent, while it acts: what it does at once it does in the order of its calls."""

    def entry(self, key: str) -> LedgerEntry:
        """Returns the entry of a call, a new one where there is none."""
        return self.entries.setdefault(key, LedgerEntry())

    def known_key(self, key: str, former_key: str) -> str:
        """Returns the key by which a call has an entry; the first where it has none.

        The former key is the one that earlier versions gave it.
        """
        if key not in self.entries and former_key in self.entries:
            return former_key
        return key

    def questions(self) -> dict[str, str]:
        """Returns what waits for an answer, by key."""
        questions: dict[str, str] = {}
        for key, entry in self.entries.items():
            if entry.state == "asked" and entry.question is not None:
                questions[key] = entry.question.question
        return questions

    def acts_at(self, path: str) -> list[LedgerEntry]:
        """Returns what the agent at a path has done, or may have done; what failed is left out."""
        acts: list[LedgerEntry] = []
        for entry in self.entries.values():
            if entry.path == path and entry.act is not None and not entry.has_failed:
                acts.append(entry)
        return acts

    def in_state(self, *states: ActState) -> list[LedgerEntry]:
        """Returns what was met here and has come so far, in the order of the states; what failed is left out."""
        entries: list[LedgerEntry] = []
        for state in states:
            for entry in (*self.entries.values(), *self.repeatable.values()):
                if entry.what and entry.state == state and not entry.has_failed:
                    entries.append(entry)
        return entries

    def has_answers(self) -> bool:
        """Returns whether the user has answered anything."""
        return any(entry.answer is not None for entry in self.entries.values())

    def has_yes(self) -> bool:
        """Returns whether the user said yes to anything."""
        return any(entry.answer for entry in self.entries.values())

    def take_answers(self, answers: Answers) -> None:
        """Notes the user's answers to what waits for one."""
        for key in self.questions():
            if isinstance(answers, bool):
                self.entry(key).answer = answers
            elif answers is not None:
                self.entry(key).answer = answers.get(key)

    def take_over(self, earlier: Resumed) -> None:
        """Notes what was settled before a turn went on; what is known stays, and so does the first answer."""
        for key, answer in earlier.answers.items():
            entry = self.entry(key)
            if entry.answer is None:
                entry.answer = answer
        for key, act in earlier.acts.items():
            entry = self.entry(key)
            if entry.act is None or entry.act.text is None:
                entry.act = act

    def resumed(self, turn_id: str) -> Resumed:
        """Returns what the log of a turn says of the acts before it went on."""
        answers: dict[str, bool] = {}
        acts: dict[str, Act] = {}
        asked: list[ApprovalAsked] = []
        for key, entry in self.entries.items():
            if entry.question is not None:
                asked.append(entry.question)
            if entry.answer is not None:
                answers[key] = entry.answer
            if entry.act is not None:
                acts[key] = entry.act
        return Resumed(turn_id=turn_id, answers=answers, acts=acts, asked=tuple(asked))


@dataclass(frozen=True)
class Resumption:
    """What a turn that goes on has of its first part."""

    started_at: float
    """Seconds since the epoch."""
    acts: ActLedger


def acts_of(events: Iterable[Event]) -> ActLedger:
    """Reads the acts of a stored turn; one that began and has no end is not known."""
    ledger = ActLedger()
    spans: dict[str, str] = {}
    for event in events:
        match event.body:
            case Resumed():
                ledger.take_over(event.body)
            case ApprovalAsked(key=key):
                ledger.entry(key).question = event.body
            case ActStarted(key=key):
                # Until its end is read nobody knows how it came out.
                ledger.entry(key).act = Act()
                ledger.entry(key).tool = event.body.tool
                spans[event.span_id] = key
            case ToolEnded() if event.span_id in spans:
                ledger.entry(spans[event.span_id]).act = act_of(event.body)
            case _:
                pass
    return ledger


def act_of(end: ToolEnded) -> Act:
    """Returns what became of an act, by the event that ended it; of one that may have been done the end is unknown."""
    if end.failure is not None and end.failure.kind in UNKNOWN:
        return Act()
    return Act(text=end.result, error=end.error, failure=end.failure)
