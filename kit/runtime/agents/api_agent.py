"""A sub-agent that is not ours, asked through a bridge: a function, an agent of another framework, a service."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from kit.bridges.part import (
    LONGEST,
    Bridge,
    BridgeFault,
    Called,
    Calling,
    Part,
    Piece,
    Question,
    Spent,
    too_long,
)
from kit.core.bodies.call import CallFailure, ToolEnded, ToolStarted
from kit.core.card import AgentCard, Policy
from kit.core.errors import STOP
from kit.core.limits import excerpt
from kit.core.outcome import AgentCall, Outcome, Usage
from kit.models.deadline import seconds_left
from kit.runtime.agents.contract import Breach, Contract
from kit.runtime.context import RunContext
from kit.runtime.handoff import hide
from kit.tools.tool import ToolContext, within


@dataclass(frozen=True)
class ApiAgent:
    """An agent without a model of the kit's. It keeps no history of ours, so prior context goes with the question.

    Its calls become spans, what it says it has spent is booked, and whatever it raises is a failure
    of this agent alone.
    """

    card: AgentCard
    bridge: Bridge
    policy: Policy = field(default_factory=Policy)
    contract: Contract = field(default_factory=Contract)

    @property
    def time_budget(self) -> float | None:
        if self.policy.time_budget_ms:
            return self.policy.time_budget_ms / 1000
        return None

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        """Asks one question and returns the answer; an empty one is a failure.

        Where sub-agents speak to the user themselves, pieces reach the user as they come.
        """
        question = Question(
            text=_with_fields(call),
            principal=ctx.inherited.principal,
            prior_context=call.prior_context,
            seconds=min(seconds_left(), self.time_budget or seconds_left()),
        )
        context = ToolContext(
            agent=self.card.id,
            turn_id=ctx.turn.log.turn_id,
            inherited=ctx.inherited,
            emit=ctx.report,
            path=ctx.path,
            at_end=ctx.ledger.at_end.append,
        )
        call = call.replace(agent=self.card.id)
        reading = _Reading(self.card.id, ctx, speaks=not self.contract.strict)
        try:
            with within(context):
                async with aclosing(self.bridge.ask(question)) as parts:
                    async for part in parts:
                        reading.take(part)
            reading.is_whole = True
        except BridgeFault as fault:
            return call.failed(fault.reason, str(fault))
        finally:
            reading.close()
        if not reading.answer:
            return call.failed("insufficient", "empty answer")
        verdict = self.contract.read(reading.answer)
        if isinstance(verdict, Breach):
            return call.failed(verdict.reason, verdict.detail, verdict.suggestion, axis="data")
        text, confidence = verdict
        return call.answered(text).replace(confidence=confidence)


def _with_fields(call: AgentCall) -> str:
    """The request, and under it what the card's hand-off lets cross beside it."""
    lines = [call.query]
    for name, value in call.fields.items():
        lines.append(f"{name}: {value}")
    return "\n".join(lines)


class _Reading:
    """What one question has brought so far: text, calls that are open, what was spent."""

    def __init__(self, agent: str, ctx: RunContext, *, speaks: bool):
        self._agent = agent
        self._ctx = ctx
        self._hear = None
        if speaks and ctx.slot is not None:
            self._hear = ctx.slot(ctx.path)
        self._pieces: list[str] = []
        self._length = 0
        self._text: str | None = None
        self._open: dict[str, tuple[RunContext, str]] = {}
        self._tells_tokens = False
        self._leaves_out_tokens = False
        self.is_whole = False
        self._tells_cost = False

    @property
    def answer(self) -> str:
        """What the system reported, else the pieces that it streamed."""
        text = self._text
        if text is None:
            text = "".join(self._pieces)
        return text.strip()

    def take(self, part: Part) -> None:
        """Takes one part. Raises OverBudget where it brings the agent over a limit of its card, and BridgeFault for
        more than an answer may have."""
        match part:
            case Piece(text=text):
                self._measure(text)
                self._pieces.append(text)
                if self._hear is not None and text:
                    self._hear(text)
            case Calling(name=name, call_id=call_id, arguments=arguments):
                # What it said before it called something is not its answer.
                self._pieces.clear()
                if self._hear is not None:
                    self._hear("", name)
                self._begin(name, call_id, arguments)
            case Called():
                self._end(part)
            case Spent(usage=usage):
                self._book(usage)
            case _:
                self._length = 0
                self._measure(part.text)
                self._text = part.text
                for name in part.calls or ():
                    self._end(Called(name))
                if part.usage is not None:
                    self._book(part.usage)

    def _measure(self, text: str) -> None:
        self._length += len(text)
        if self._length > LONGEST:
            raise too_long()

    def close(self) -> None:
        """Ends the calls that the system did not end, and books that it did not say what it spent."""
        for call_id, (span, name) in self._open.items():
            stopped = CallFailure(kind="cancelled")
            span.emit(
                ToolEnded(
                    agent=self._agent, tool=name, call_id=call_id, error=STOP, failure=stopped
                )
            )
        self._open.clear()
        # What a system was doing when it was broken off it does not say any more.
        has_tokens = self.is_whole and self._tells_tokens and not self._leaves_out_tokens
        has_cost = self.is_whole and self._tells_cost
        self._ctx.ledger.charge(
            Usage(untold_tokens=int(not has_tokens), untold_costs=int(not has_cost))
        )

    def _begin(self, name: str, call_id: str, arguments: Mapping[str, Any] | None) -> None:
        ctx = self._ctx
        args = dict(arguments or {})
        if ctx.turn.private:
            args = hide(args, ctx.turn.private)
        span = ctx.open_span(ToolStarted(agent=self._agent, tool=name, call_id=call_id, args=args))
        self._open[call_id] = (span, name)
        ctx.ledger.charge(Usage(tool_calls=1))
        ctx.ledger.before_tools(0)

    def _end(self, called: Called) -> None:
        call_id = called.call_id or self._ctx.turn.log.new_span()
        if call_id not in self._open:
            self._begin(called.name, call_id, called.arguments)
        span, name = self._open.pop(call_id)
        result = excerpt(called.result or "")
        fault = called.fault
        if self._ctx.turn.private:
            result = hide(result, self._ctx.turn.private)
            fault = hide(fault, self._ctx.turn.private)
        failure = None
        if fault is not None:
            failure = CallFailure(kind="exception", text=fault)
        span.emit(
            ToolEnded(
                agent=self._agent,
                tool=name,
                call_id=call_id,
                result=result,
                error=fault,
                failure=failure,
            )
        )

    def _book(self, usage: Usage) -> None:
        if usage.untold_tokens:
            self._leaves_out_tokens = True
        else:
            self._tells_tokens = True
        self._tells_cost = self._tells_cost or usage.cost is not None
        # Whether something stays untold is known at the end, and counted then.
        self._ctx.ledger.charge(usage.replace(untold_tokens=0, untold_costs=0))
        self._ctx.ledger.after_model()
