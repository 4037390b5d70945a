"""Judges in the shadow: of cards that share their sessions they read the turns that have ended, and no turn waits."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from kit.bench.case import Ask, Case
from kit.bench.promotion_trial import judge_of
from kit.bench.scoring.judge import Judge, LLMJudge, Verdict
from kit.bench.scoring.observation import Observation, observe
from kit.compose.canary import is_compared, new_for
from kit.core.bodies.call import AgentEnded
from kit.core.bodies.turn import TurnStarted
from kit.core.display.count import many
from kit.core.display.made_to_fail import wanted_faults
from kit.core.event import Event
from kit.core.outcome import Failure
from kit.core.record import TurnRecord
from kit.core.trace import Span, Trace
from kit.metrics.judgement import Judgement, judge_name, keep_judgement, note_shed
from kit.stores.recall import repeated_turn
from kit.wire import Kit

log = logging.getLogger("kit.shadow")
WAITING = 256
"""Turns that may wait to be judged; one that comes when so many do is left out and counted."""
PATIENCE = 60.0
"""Seconds that a verdict may take."""
CLOSING = 5.0
"""Seconds that the turns which wait get when a kit closes."""


class _EndedTurn(NamedTuple):
    turn: TurnRecord
    trace: Trace
    events: Sequence[Event]
    cards: frozenset[str]
    """The cards for which its session is judged."""


class ShadowJudges:
    """A sink of finished turns that has them judged, one after the other.

    Of a card's two versions the sessions with the new one are judged, and as many of the others. What cannot be judged
    in time, or at all, is counted and left out.
    """

    name = "judges"

    def __init__(self, kit: Kit, waiting: int = WAITING):
        self.shed = 0
        """Turns that were left out because too many waited."""
        self.verdicts_lost = 0
        """Verdicts that did not come, or could not be kept."""
        self._kit = kit
        self._queue: asyncio.Queue[_EndedTurn] = asyncio.Queue(waiting)
        self._noted = 0
        root = kit.team.orchestrator.card
        self._judges: dict[str, tuple[str, Judge]] = {}
        # Both versions are judged alike: as the new one asks for it.
        for card in (root, *kit.deck.next_cards.values()):
            judge = judge_of(card, kit.team)
            if judge is not None:
                self._judges[card.id] = (judge_name(card), judge)

    def turn_ended(self, turn: TurnRecord, trace: Trace, events: Sequence[Event]) -> None:
        """Queues a turn; never waits."""
        # What somebody asks again, or forks to try another prompt, is no session of a user.
        if repeated_turn(turn.session_id):
            return
        deck = self._kit.deck
        cards = set(new_for(deck, turn.session_key))
        for card_id in deck.next_cards:
            if is_compared(deck, turn.session_key, card_id):
                cards.add(card_id)
        # What its user stopped says nothing of the answer.
        if not cards or turn.status == "cancelled":
            return
        try:
            self._queue.put_nowait(_EndedTurn(turn, trace, events, frozenset(cards)))
        except asyncio.QueueFull:
            if not self.shed:
                log.warning("the judges are behind: turns are left out and counted from here on")
            self.shed += 1

    def close(self) -> None:
        """Does nothing: whoever opened the judges ends them."""

    async def work(self) -> None:
        """Judges what comes, until it is cancelled."""
        while True:
            waiting_turn = await self._queue.get()
            try:
                await self._judge(waiting_turn)
            # A border: judges are models and somebody's rules.
            except Exception as error:
                self.verdicts_lost += 1
                log.warning("turn %s was not judged: %s", waiting_turn.turn.id, error)
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Returns once nothing waits."""
        await self._queue.join()

    async def _judge(self, waiting_turn: _EndedTurn) -> None:
        events = self._kit.store.open_documents().events
        if self.shed > self._noted:
            await note_shed(events, waiting_turn.turn, self.shed - self._noted)
            self._noted = self.shed
        start = next(e.body for e in waiting_turn.events if isinstance(e.body, TurnStarted))
        # What was made to fail on purpose says nothing of a version.
        if wanted_faults(waiting_turn.events) or not start.versions:
            return
        observation = observe(waiting_turn.events)
        stopped = set[str]()
        for event in waiting_turn.events:
            match event.body:
                case AgentEnded(outcome=Failure(is_stopped=True)):
                    stopped.add(event.span_id)
                case _:
                    pass
        root = self._kit.team.root
        case = _case(waiting_turn.turn.id, waiting_turn.turn.message, observation.called)
        spans = [(waiting_turn.trace.spans[0], root, case, observation)]
        for span in waiting_turn.trace.spans:
            # One that lost a race said nothing that could be judged.
            if span.id in stopped:
                continue
            if span.kind == "agent" and span.agent in waiting_turn.cards and span.agent != root:
                alone = _observation_of(span, observation, self._judges[span.agent][1])
                spans.append((span, span.agent, _case(span.id, span.input, (span.agent,)), alone))
        for span, agent, case, observation in spans:
            name, judge = self._judges[agent]
            if span.kind == "agent" and span.status != "ok":
                verdict = Verdict(score=0.0, why=f"It failed: {span.error}")
            else:
                verdict = await asyncio.wait_for(judge.judge(case, observation), PATIENCE)
            if verdict is None:
                self.verdicts_lost += 1
                continue
            judgement = Judgement(
                turn_id=waiting_turn.turn.id,
                span_id=span.id,
                session=str(waiting_turn.turn.session_key),
                agent="" if span.kind == "turn" else agent,
                versions=start.versions,
                judge=name,
                score=verdict.score,
                why=verdict.why,
            )
            await keep_judgement(events, waiting_turn.turn, judgement)


def _case(case_id: str, message: str, agents: tuple[str, ...]) -> Case:
    return Case(id=case_id, kind="single", domain="", turns=(Ask(user=message, expected=agents),))


def _observation_of(span: Span, whole: Observation, judge: Judge) -> Observation:
    """What is seen of a sub-agent alone: what it was asked, what its tools said, and its answer."""
    material: Mapping[str, str] = {}
    if span.agent in whole.material:
        material = {span.agent: whole.material[span.agent]}
    # A model is shown what the answer was made of as its findings; a rule looks for figures in it.
    findings = material if isinstance(judge, LLMJudge) else {}
    return Observation(
        text=span.output,
        visible_texts=(span.output,),
        invoked=(span.agent,),
        queries={span.agent: span.input},
        answers=findings,
        material=material,
    )


@asynccontextmanager
async def shadow_judges(kit: Kit, waiting: int = WAITING) -> AsyncGenerator[ShadowJudges | None]:
    """Has the turns of a kit judged while it is open; None where its deck shares no card's sessions.

    Raises DataError or UnknownId for a judge or a rubric that there is not.
    """
    if not kit.deck.next_cards:
        yield None
        return
    judges = ShadowJudges(kit, waiting)
    before = kit.recorder.sinks
    kit.recorder.sinks = (*before, judges)
    working = asyncio.create_task(judges.work())
    try:
        yield judges
    finally:
        kit.recorder.sinks = before
        with suppress(TimeoutError):
            await asyncio.wait_for(judges.drain(), CLOSING)
        working.cancel()
        await asyncio.wait([working])
        if judges.shed or judges.verdicts_lost:
            log.warning(
                "%s were left out and %s did not come",
                many(judges.shed, "turn"),
                many(judges.verdicts_lost, "verdict"),
            )
