"""Plays a case on a whole system: what it answered, whom it says it asked, and what it says it has spent."""

import asyncio
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, cast

from kit.bench.case import Case
from kit.bench.grid.grid import Limits
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.own_judges import Loss, own_line
from kit.bench.scoring.played_cell import PlayedCell, PlayedTurn, known_sum, turn_fields
from kit.bench.statistics.measures import COUNTS
from kit.bridges.part import (
    Bridge,
    BridgeFault,
    Called,
    Calling,
    Part,
    Piece,
    Question,
    Reported,
    Spent,
)
from kit.core.context import Principal
from kit.core.errors import FOREIGN, describe_error
from kit.core.model import ModelSpec
from kit.core.outcome import ErrorClass, Usage, total
from kit.models.diagnosis import class_of, status_of

SECONDS = 120.0
"""How long an answer may take where nobody says."""
_LONGEST = 2_000
"""Characters of an answer that its line in the results keeps."""
_REMEDIES: Mapping[ErrorClass, str] = {
    "auth": "a key is refused, or its account has no credit left",
    "not_found": "check the name of the model, and the address it is asked at",
    "limit": "ask less at once (limits.concurrency), or wait",
    "network": "nothing answers there, or the connection broke",
    "server": "the endpoint failed: try again later",
}
_OF_BRIDGES: Mapping[str, ErrorClass] = {"unavailable": "network", "rate_limited": "limit"}
"""Why a bridge has no answer -> what of the infrastructure lost it."""


@dataclass
class _Turn:
    """What came of one turn so far; of one that has ended, what it came to."""

    pieces: list[str] = field(default_factory=list[str])
    calls: list[Called] = field(default_factory=list[Called])
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Id of a call -> its name, which some frameworks say when it begins and not when it ends."""
    usages: list[Usage] = field(default_factory=list[Usage])
    spans: list[Any] = field(default_factory=list[Any])
    report: Reported | None = None
    seconds: float = 0.0
    first_text: float | None = None
    status: str = "ok"
    error: str = ""
    """What the system failed by."""

    def take(self, part: Part, seconds: float) -> None:
        match part:
            case Piece():
                self.pieces.append(part.text)
            case Calling():
                # What was said before a call is no part of the answer.
                self.pieces.clear()
                self.names[part.call_id] = part.name
            case Called():
                name = self.names.get(part.call_id, part.name)
                self.calls.append(replace(part, name=name))
            case Spent():
                self.usages.append(part.usage)
            case Reported():
                self.report = part
        if self.first_text is None and isinstance(part, Piece | Reported):
            self.first_text = round(seconds, 6)

    @property
    def text(self) -> str:
        """The answer. Raises TypeError for what is none."""
        # What an unfinished answer had streamed is no answer.
        if self.error:
            return ""
        if self.report is None:
            return "".join(self.pieces)
        text = cast("object", self.report.text)
        if not isinstance(text, str):
            raise TypeError(f"answered a value of type {type(text).__name__}; answer with text")
        return text


@dataclass(frozen=True)
class System:
    """A loaded system, and what is known beside it."""

    name: str
    bridge: Bridge
    agents: Collection[str]
    """Names that any case expects: a tool of that name counts as whom a message is for."""
    prices: Mapping[str, ModelSpec]
    """Models by the name that a provider has for them."""
    limits: Limits = field(default_factory=Limits)
    """How long an answer may take, and what tokens without a price are taken for."""

    @property
    def seconds(self) -> float:
        return self.limits.seconds or SECONDS

    async def play(self, case: Case, cell: str) -> PlayedCell | Loss:
        """The scored turns of a case, with what was said before them; the loss where infrastructure took one.

        What the system fails by itself is an outcome: it raised, took too long, or returned no
        answer, and whoever asked got none.
        """
        played: list[PlayedTurn] = []
        times: list[dict[str, float | None]] = []
        costs: list[float | None] = []
        errors: list[str] = []
        for number in case.scored:
            turn = await self._turn(_question(case, number, self.seconds))
            if isinstance(turn, Loss):
                return turn
            usage = self._usage(turn)
            observation = _observation(turn, number, self._calls(turn))
            fields = _fields(case, observation, turn.error, usage)
            played.append(PlayedTurn(observation=observation, fields=fields))
            times.append(
                {"seconds": turn.seconds, "ttft": turn.first_text, "routing_seconds": None}
            )
            cost = None
            if usage is not None and usage.cost is not None:
                cost = usage.cost
            elif fields["input_tokens"] is not None and fields["output_tokens"] is not None:
                cost = self.limits.assumed(fields["input_tokens"], fields["output_tokens"])
            costs.append(cost)
            if turn.error:
                errors.append(turn.error)
        # No fault of a case can be made to happen in a system that is somebody else's.
        return PlayedCell(
            cell=cell,
            turns=tuple(played),
            void=", ".join(case.faults),
            dollars=known_sum(costs),
            times=times,
            error=errors[0] if len(errors) == len(played) else "",
        )

    async def _turn(self, question: Question) -> _Turn | Loss:
        loop = asyncio.get_running_loop()
        turn = _Turn()
        began = loop.time()
        timer = asyncio.timeout(self.seconds)
        with _turn_spans() as turn.spans:
            try:
                async with timer, aclosing(self.bridge.ask(question)) as parts:
                    async for part in parts:
                        turn.take(part, loop.time() - began)
                # Reading it says whether it is one.
                _ = turn.text
            # A border: a system is somebody else's code, and may raise anything, or end the process.
            except (*FOREIGN, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                    raise
                turn.status = "failed"
                turn.error = f"{describe_error(error)}{own_line(error)}"
                if timer.expired():
                    turn.status = "deadline"
                    turn.error = f"no answer within {self.seconds:g} s"
                loss = loss_of(error)
                if loss is not None and not timer.expired():
                    line = f"system {self.name!r}: {turn.error}; {_REMEDIES.get(loss, '')}"
                    return Loss(loss, line)
        turn.seconds = round(loop.time() - began, 6)
        return turn

    def _calls(self, turn: _Turn) -> tuple[str, ...] | None:
        """Whom the system says it asked, by the first of three ways in which it says anything."""
        if turn.report is not None and turn.report.calls is not None:
            return tuple(dict.fromkeys(map(str, turn.report.calls)))
        calls = turn.calls
        if not calls and turn.spans:
            from kit.bench.systems.spans import calls_of

            calls = calls_of(turn.spans)
        names: dict[str, None] = {}
        for call in calls:
            if call.kind == "agent" or call.name in self.agents:
                names[call.name] = None
        # A framework that names its tools may choose among its agents by other means, so that
        # silence on agents does not say that nobody was asked. A Reported says it: `calls=[]`.
        return tuple(names) or None

    def _usage(self, turn: _Turn) -> Usage | None:
        if turn.report is not None and turn.report.usage is not None:
            return turn.report.usage
        if turn.usages:
            fields: set[str] = set()
            for usage in turn.usages:
                fields |= usage.model_fields_set
            summed = total(turn.usages)
            return Usage(**{name: getattr(summed, name) for name in fields})
        if not turn.spans:
            return None
        from kit.bench.systems.spans import usage_of

        return usage_of(turn.spans, self.prices)


def loss_of(error: BaseException) -> ErrorClass | None:
    """What of the infrastructure lost an answer; None where the system failed by itself.

    Frameworks wrap what their clients raise, so causes are looked at as well.
    """
    for cause in _causes(error):
        status = status_of(cause)
        if status is not None:
            error_class = class_of(cause)
            # A request that an endpoint refuses was made by the system.
            return None if error_class == "kit" else error_class
        if isinstance(cause, BridgeFault) and cause.reason in _OF_BRIDGES:
            return _OF_BRIDGES[cause.reason]
        name = type(cause).__name__
        of_network = isinstance(cause, ConnectionError | socket.gaierror) or any(
            word in name for word in ("Connect", "ReadTimeout", "APITimeout", "ReadError")
        )
        if of_network:
            return "network"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    for _ in range(8):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


def _question(case: Case, number: int, seconds: float) -> Question:
    lines: list[str] = []
    for ask in case.turns[:number]:
        lines.append(f"User: {ask.message}")
        if ask.assistant:
            lines.append(f"Assistant: {ask.assistant}")
    principal: Principal = case.principal
    return Question(case.turns[number].user, principal, "\n".join(lines) or None, seconds)


def _observation(turn: _Turn, number: int, calls: tuple[str, ...] | None) -> Observation:
    """`calls` None: the system does not say whom it asked."""
    return Observation(
        turn=number,
        status=turn.status,
        text=turn.text,
        visible_texts=(turn.text,),
        routed=calls is not None,
        invoked=calls or (),
    )


def _fields(
    case: Case, observation: Observation, error: str, usage: Usage | None
) -> dict[str, Any]:
    """What a turn's line says beside its names and its scores; what is not told is None there."""
    counts: dict[str, float | None] = {}
    for name in COUNTS:
        is_told = usage is not None and name in usage.model_fields_set
        if usage is not None and usage.untold_tokens and name.endswith("_tokens"):
            is_told = False
        counts[name] = getattr(usage, name) if is_told else None
    fields = turn_fields(case, observation, counts)
    fields["text"] = observation.text[:_LONGEST]
    if error:
        fields["error"] = error
    return fields


def _turn_spans() -> AbstractContextManager[list[Any]]:
    """Hears the spans of a turn, where OpenTelemetry's SDK is installed."""
    if not _has_sdk():
        return nullcontext([])
    from kit.bench.systems.spans import turn_spans

    return turn_spans()


@cache
def _has_sdk() -> bool:
    # Of a package that is missing as a whole, find_spec() raises for what lies in it.
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None
