"""Plays cells: a kit for every model, prompt and setting, the real turn for every cell, its scores as a line."""

import asyncio
import json
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import Any, Protocol, cast

from kit.bench.case import Case
from kit.bench.grid.cell import Cell, track
from kit.bench.grid.failures import error_of
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.hops import hop_counts, hop_times, hops_of
from kit.bench.grid.ledger import FinishedCell
from kit.bench.grid.stand_ins.simulated_tools import with_simulated_tools
from kit.bench.grid.stand_ins.transient_store import TransientStore
from kit.bench.model_judges import Judgement, Judges, bill, judge_deck
from kit.bench.routing import Stub
from kit.bench.scoring.failsafe import fate
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.run_case import run_case
from kit.compose.deck import Deck
from kit.core.bodies.call import Hop
from kit.core.errors import KitError
from kit.core.fault import Fault
from kit.core.outcome import ErrorClass, Usage, total
from kit.core.record import TurnRecord
from kit.models.diagnosis import class_of, status_of
from kit.runtime.handle import Reply
from kit.runtime.team import Models
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from kit.tools.tool import tool_name
from kit.wire import Kit

NOTHING = Judgement()
"""What is said of a turn that no judge was asked about."""


class Opener(Protocol):
    """Opens a kit: kit.wire.open_kit with its settings filled in. It must survive pickling, for it
    crosses to other processes."""

    def __call__(
        self, *, models: Models, deck: Deck, faults: bool
    ) -> AbstractAsyncContextManager[Kit]: ...


class Player:
    """Opens each kit when its first cell comes; `close` closes them all. It belongs to one event loop."""

    def __init__(
        self, spec: GridSpec, opener: Opener, run: Callable[..., Awaitable[Reply]] = run_turn
    ):
        self._spec, self._open, self.run = spec, opener, run
        self._stack = AsyncExitStack()
        self._kits: dict[tuple[str, str, str, bool], Kit] = {}
        self._hosts: dict[tuple[str, str, str, bool, str], Kit] = {}
        self._lock = asyncio.Lock()
        subs = spec.deck.active_sub_agents(spec.deck.cards[spec.deck.settings.orchestrator])
        self._tools = {card.id: tool_name(card.tools[0]) for card in subs if card.tools}
        self.store = TransientStore()
        """Where the rollups of the turns are until their cells have taken them."""
        self._traces = SqliteStore(spec.traces) if spec.traces else None
        self._patterns = spec.patterns
        judges = {name: spec.scorers[name] for name in spec.grid.scorers}
        self._scorers = {name: judge for name, judge in judges.items() if callable(judge)}
        self._own_judges = {name: judge for name, judge in judges.items() if not callable(judge)}
        self._judges = Judges(spec, {})
        self._kinds, self._virtual, self._concurrency = spec.kinds, spec.virtual, spec.concurrency

    async def play(
        self,
        cells: Iterable[Cell],
        keep: Callable[[FinishedCell], object],
        go_on: Callable[[], bool] | None = None,
    ) -> None:
        """Plays cells, as many at a time as the grid says; `keep` gets each as it is done, in no
        order.

        Every way is bound before the first cell is played. No further cell is begun once `go_on`
        says no. What one cell raises ends all of them.
        """
        cells = list(cells)
        for cell in {
            (cell.model, cell.prompt, cell.setting, cell.pattern): cell for cell in cells
        }.values():
            await self.host(
                cell,
                faults=bool(self._spec.faults[cell.fault] or self._spec.cases[cell.case].faults),
            )
        await self._bind_judges()
        queue = iter(cells)

        async def hand() -> None:
            for cell in queue:
                if go_on is not None and not go_on():
                    return
                keep(await self.cell(cell))

        hands = [asyncio.ensure_future(hand()) for _ in range(self._concurrency)]
        try:
            await asyncio.gather(*hands)
        finally:
            for task in hands:
                task.cancel()
            await asyncio.gather(*hands, return_exceptions=True)

    async def close(self) -> None:
        await self._stack.aclose()
        if self._traces is not None:
            self._traces.close()

    async def cell(self, cell: Cell) -> FinishedCell:
        """Plays one cell: its case's turns one after the other, in a session of its own.

        A fault of the kit fails the cell, as infrastructure does. Raises KitError, which a person can mend.
        """
        try:
            return await self._cell(cell)
        except KitError:
            raise
        except Exception as error:
            case = self._spec.cases[cell.case]
            error_class = (
                "kit" if status_of(error) is None else class_of(error)
            )  # a judge's endpoint may fail, too
            return self._failed(
                cell,
                case,
                error_class,
                "".join(traceback.format_exception_only(error)).strip(),
                None,
            )

    async def _cell(self, cell: Cell) -> FinishedCell:
        faults, case = self._spec.faults[cell.fault], self._spec.cases[cell.case]
        if faults:
            case = case.model_copy(update={"faults": (*case.faults, *map(str, faults))})
        host = await self.host(cell, faults=bool(case.faults))
        store = SqliteStore(":memory:") if case.live else self.store
        cassette = (
            host.cassette.track(track(self._spec, cell)) if host.cassette is not None else None
        )
        if case.live or cassette is not None:
            host = replace(host, store=store, cassette=cassette)
        pattern = self._patterns[cell.pattern]
        if (gate := host.team.orchestrator.model.gate) is not None and not self._spec.replayed:
            await gate.opened()
        landed: set[Fault] = set()
        began, wall = time.process_time(), time.perf_counter()
        turns = await run_case(
            case,
            host,
            pattern,
            session=cell.key,
            repeat=cell.repeat,
            tools=self._tools,
            run=self.run,
            landed=landed,
        )
        cpu_seconds, wall_seconds = time.process_time() - began, time.perf_counter() - wall
        if cassette is not None and not (cassette.mode != "replay" and self._spec.virtual):
            cassette.close()  # before the cell counts as finished: what a model said once is not paid for twice
        records = [self._record(store, reply) for _, reply in turns]
        dollars = _sum(map(self._cost, records))
        if self._traces is not None:
            for (_, reply), record in zip(turns, records, strict=True):
                self._traces.end_turn(record, reply.events, ())
        if self._kinds[cell.model] == "measured" and (
            error := error_of([reply for _, reply in turns], faults=bool(case.faults))
        ):
            return self._failed(cell, case, *error, dollars)
        void = ", ".join(map(str, faults)) if landed.isdisjoint(faults) else ""
        timing: dict[str, Any] = {"cell": cell.key, "wall_ms": round(1e3 * wall_seconds, 3)}
        if self._concurrency == 1:
            timing["cpu_ms"] = round(1e3 * cpu_seconds, 3)
        if not self._virtual:
            timing["turns"] = [
                _times(*turn)
                for turn in zip(records, (hops_of(reply.events) for _, reply in turns), strict=True)
            ]
        return await self._judged_cell(cell, case, void, turns, records, timing, dollars)

    async def _judged_cell(
        self,
        cell: Cell,
        case: Case,
        void: str,
        turns: Sequence[tuple[Observation, Reply]],
        records: Sequence[TurnRecord],
        timing: Mapping[str, Any],
        dollars: float | None,
    ) -> FinishedCell:
        """The end of a cell that is a sample, if every judge has a verdict on it."""
        judgements, judging = [NOTHING] * len(turns), NOTHING.usage
        if self._spec.grid.judges and not void:
            judgements = await self._judges.judge(
                cell, case, [observation for observation, _ in turns]
            )
            judging = total(one.usage for one in judgements)
            if (loss := judgements[-1].loss) is not None:
                return self._failed(cell, case, *loss[:2], dollars, judging, loss[2])
        scores = [await self._scores(case, observation) for observation, _ in turns]
        lines = [
            self._line(cell, case, void, *turn)
            for turn in zip(turns, records, scores, judgements, strict=True)
        ]
        return FinishedCell(
            cell.key,
            "".join(lines),
            json.dumps(timing) + "\n",
            _sum((dollars, self._cost(judging))),
        )

    def _names(self, cell: Cell, case: Case) -> dict[str, Any]:
        """What every line of a cell begins with."""
        return {
            "kind": self._kinds[cell.model],
            "model": cell.model,
            "prompt": cell.prompt,
            "setting": cell.setting,
            "pattern": cell.pattern,
            "fault": cell.fault,
            "case": case.id,
            "repeat": cell.repeat,
        }

    def _failed(
        self,
        cell: Cell,
        case: Case,
        error_class: ErrorClass,
        error: str,
        dollars: float | None,
        judging: Usage = NOTHING.usage,
        judge: str = "",
    ) -> FinishedCell:
        """The end of a cell that is no sample; what it cost stays spent."""
        turns = sum(not ask.skip for ask in case.turns)
        row = {
            **self._names(cell, case),
            "domain": case.domain,
            "turns": turns,
            "error_class": error_class,
            "error": error,
        }
        line = json.dumps({**row, "cost": dollars, **bill(judging), "cell": cell.key}) + "\n"
        return FinishedCell(
            cell.key, line, "", _sum((dollars, self._cost(judging))), error_class, judge
        )

    async def host(self, cell: Cell, *, faults: bool) -> Kit:
        """The kit that a cell's turns run on, with the team of its pattern and a store that forgets."""
        key = (cell.model, cell.prompt, cell.setting, faults, cell.pattern)
        if key not in self._hosts:
            kit = await self._kit(cell, faults=faults)
            team = kit.stages.team(self._patterns[cell.pattern])
            if self._spec.grid.sub_agents == "stubs":
                team = team.with_agents(
                    {card.id: Stub(card) for card in team.orchestrator.sub_cards.values()}
                )
            self._hosts[key] = replace(kit, team=team, store=self.store)
        return self._hosts[key]

    async def _kit(self, cell: Cell, *, faults: bool) -> Kit:
        key = (cell.model, cell.prompt, cell.setting, faults)
        async with self._lock:
            if key not in self._kits:
                deck = self._spec.decks[cell.prompt, cell.setting]
                deck = replace(deck, models=self._spec.deck.models)
                if self._spec.grid.sub_agents != "world":
                    deck = with_simulated_tools(deck)
                lead, others = deck.settings.orchestrator, self._spec.grid.others
                models = (
                    cell.model
                    if others is None
                    else {lead: cell.model, "*": others, "helper": others}
                )
                context = self._open(models=models, deck=deck, faults=faults)
                self._kits[key] = await self._stack.enter_async_context(context)
        return self._kits[key]

    async def _bind_judges(self) -> None:
        deck = judge_deck(self._spec.deck.models)
        contexts = {
            name: self._open(models=one.model, deck=deck, faults=False)
            for name, one in self._spec.grid.judges.items()
        }
        self._judges = Judges(
            self._spec,
            {name: await self._stack.enter_async_context(one) for name, one in contexts.items()},
        )

    def _cost(self, record: TurnRecord | Usage) -> float | None:
        """What a turn, or its judges, count for against the limit."""
        dear = self._spec.grid.limits.unpriced
        if record.cost is not None or dear is None:
            return record.cost
        return (record.input_tokens * dear[0] + record.output_tokens * dear[1]) / 1e6

    def _record(self, store: TransientStore | SqliteStore, reply: Reply) -> TurnRecord:
        record = (
            store.take(reply.turn_id)
            if isinstance(store, TransientStore)
            else store.turn(reply.turn_id)
        )
        return cast(TurnRecord, record)

    async def _scores(self, case: Case, observation: Observation) -> dict[str, float | None]:
        scores = {name: scorer(case, observation) for name, scorer in self._scorers.items()}
        for name, judge in self._own_judges.items():
            verdict = await judge.judge(case, observation)
            scores[name] = None if verdict is None else verdict.score
        return scores

    def _line(
        self,
        cell: Cell,
        case: Case,
        void: str,
        turn: tuple[Observation, Reply],
        record: TurnRecord,
        scores: Mapping[str, float | None],
        judgement: Judgement,
    ) -> str:
        observation, reply = turn
        hops = hops_of(reply.events)
        row = {
            **self._names(cell, case),
            "turn": observation.turn,
            "domain": case.domain,
            "parts": len(case.turns[observation.turn].expected),
            "status": observation.status,
            **({"truncated": True} if reply.truncated else {}),
            "called": sorted(observation.called),
            "failed": sorted(record.failed),
            "failsafe": fate(case.turns[observation.turn].expected, observation.called, reply),
            "model_calls": record.model_calls,
            "input_tokens": record.input_tokens,
            "output_tokens": record.output_tokens,
            "cost": record.cost,
            **(hop_counts(hops) if hops else {}),
            **(_times(record, hops) if self._virtual else {}),
            **({"void": f"{void} never happened"} if void else {}),
            "scores": dict.fromkeys(scores) if void else {**scores, **judgement.scores},
            **judgement.fields,
            "cell": cell.key,
        }
        return json.dumps(row) + "\n"


def _sum(dollars: Iterable[float | None]) -> float | None:
    """None where no price is known."""
    costs = [cost for cost in dollars if cost is not None]
    return sum(costs) if costs else None


def _times(record: TurnRecord, hops: Sequence[Hop]) -> dict[str, float | None]:
    """Seconds of a turn by its own clock: whole, to the first text, to decide whom to ask, and of
    its calls elsewhere."""
    times = {
        "seconds": record.seconds,
        "ttft": record.ttft,
        "routing_seconds": record.measures.routing,
    }
    rounded = {
        name: None if seconds is None else round(seconds, 6) for name, seconds in times.items()
    }
    return rounded | hop_times(hops) if hops else rounded
