"""Plays cells: a kit for every model, prompt and setting, the real turn for every cell, its scores as a line."""

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import Any, Protocol, cast

from kit.bench.case import Case
from kit.bench.grid.cell import Cell, Halt, Sample, sample_of, track
from kit.bench.grid.failures import error_of
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.hops import hop_counts, hop_times, hops_of
from kit.bench.grid.ledger import FinishedCell
from kit.bench.grid.results import AXES
from kit.bench.grid.stand_ins.simulated_tools import with_simulated_tools
from kit.bench.grid.stand_ins.transient_store import TransientStore
from kit.bench.model_judges import Judgement, bill, judge_deck, judge_turn
from kit.bench.routing import Stub
from kit.bench.scoring.failsafe import fate
from kit.bench.scoring.judge import Judge
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.own_judges import Loss, VerdictLost, own_scores, try_judges
from kit.bench.scoring.played_cell import PlayedCell, PlayedTurn, known_sum, turn_fields
from kit.bench.scoring.run_case import run_case
from kit.bench.scoring.scorers import SCORERS, Scorer, scores_of
from kit.bench.statistics.measures import COUNTS
from kit.bench.systems.play import System
from kit.compose.deck import Deck
from kit.compose.models import load_models
from kit.core.context import OPERATOR
from kit.core.errors import KitError
from kit.core.fault import Fault
from kit.core.outcome import Usage, total
from kit.core.record import TurnRecord
from kit.home import HOME
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
        self._spec = spec
        self._open = opener
        self.run = run
        self._stack = AsyncExitStack()
        self._kits: dict[tuple[str, str, str, bool], Kit] = {}
        self._hosts: dict[tuple[str, str, str, bool, str], Kit] = {}
        self._lock = asyncio.Lock()
        self._tools: dict[str, str] = {}
        # A grid of whole systems alone has no deck.
        if spec.grid.models:
            lead = spec.deck.cards[spec.deck.settings.orchestrator]
            for card in spec.deck.active_sub_agents(lead):
                if card.tools:
                    self._tools[card.id] = tool_name(card.tools[0])
        self._systems: dict[str, System] = {}
        self.store = TransientStore()
        """Where the rollups of the turns are until their cells have taken them."""
        self._traces = SqliteStore(spec.traces) if spec.traces else None
        self._patterns = spec.patterns
        self._rules: dict[str, Scorer] = {}
        self._own_judges: dict[str, Scorer | Judge] = {}
        for name in spec.grid.scorers:
            if name in spec.own.judges:
                self._own_judges[name] = spec.own.judges[name]
            else:
                self._rules[name] = SCORERS[name]
        self._judge_kits: dict[str, Kit] = {}
        self._kinds = spec.kinds
        self._virtual = spec.virtual
        self._concurrency = spec.concurrency

    async def play(
        self,
        cells: Iterable[Cell],
        keep: Callable[[FinishedCell], object],
        halt: Callable[[], Halt] | None = None,
    ) -> None:
        """Plays cells, as many at a time as the grid says; `keep` gets each as it is done, in no
        order.

        Every way is bound before the first cell is played. No cell is begun that `halt` forbids by
        then. What one cell raises ends all of them.
        """
        cells = list(cells)
        # A way that cannot be bound ends the run before anything is paid for.
        ways: dict[tuple[str, str, str, str], Cell] = {}
        for cell in cells:
            ways[cell.model, cell.prompt, cell.setting, cell.pattern] = cell
        for cell in ways.values():
            if cell.model in self._spec.systems:
                self._load_system(cell.model)
                continue
            faults = self._spec.faults[cell.fault] or self._spec.cases[cell.case].faults
            await self.host(cell, faults=bool(faults))
        await self._bind_judges()
        if cells:
            await try_judges(self._own_judges, self._spec.cases[cells[0].case])
        queue = iter(cells)
        begun: set[Sample] = set()

        async def hand() -> None:
            for cell in queue:
                if halt is not None and halt().forbids(cell, begun):
                    continue
                begun.add(sample_of(cell))
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
            line = "".join(traceback.format_exception_only(error)).strip()
            return self._failed(cell, self._spec.cases[cell.case], Loss("kit", line), None)

    async def _cell(self, cell: Cell) -> FinishedCell:
        case = self._spec.cases[cell.case]
        played = PlayedCell.from_json(cell.stored) if cell.stored else None
        # Not stored, or by a version that wrote turns otherwise.
        if played is None:
            played = await self._play_turns(cell, case)
        if isinstance(played, FinishedCell):
            return played
        finished = await self._score_turns(cell, case, played)
        if not played.error or finished.error_class is not None:
            return finished
        loss = Loss("system", f"system {cell.model!r}: {played.error}")
        failed = self._failed(cell, case, loss, None, played.dollars)
        return finished._replace(unanswered=failed.lines)

    async def _play_turns(self, cell: Cell, case: Case) -> PlayedCell | FinishedCell:
        """The turns of a cell as they were played; the failed cell where infrastructure lost one."""
        if cell.model in self._spec.systems:
            outcome = await self._systems[cell.model].play(case, cell.key)
            if isinstance(outcome, Loss):
                return self._failed(cell, case, outcome, None)
            return outcome
        faults = self._spec.faults[cell.fault]
        if faults:
            case = case.model_copy(update={"faults": (*case.faults, *map(str, faults))})
        store = SqliteStore(":memory:") if case.live else self.store
        host = await self._host_of_cell(cell, case, store)
        cassette = host.cassette
        landed: set[Fault] = set()
        turns = await run_case(
            case,
            host,
            self._patterns[cell.pattern],
            session=cell.key,
            repeat=cell.repeat,
            tools=self._tools,
            run=self.run,
            landed=landed,
        )
        if cassette is not None and not (cassette.mode != "replay" and self._spec.virtual):
            # Before the cell counts as finished: what a model said once is not paid for twice.
            cassette.close()
        costs: list[float | None] = []
        played_turns: list[PlayedTurn] = []
        turn_times: list[dict[str, float | None]] = []
        replies: list[Reply] = []
        for observation, reply in turns:
            replies.append(reply)
            record = self._record(store, reply)
            costs.append(self._cost(record))
            if self._traces is not None:
                # An earlier run may have kept this turn, and have been killed before it kept the cell.
                self._traces.begin_turn(record)
                self._traces.end_turn(record, reply.events, ())
            fields = self._fields(case, observation, reply, record)
            played_turns.append(PlayedTurn(observation=observation, fields=fields))
            if not self._virtual:
                turn_times.append(_times(record, reply))
        dollars = known_sum(costs)
        if self._kinds[cell.model] == "measured":
            error = error_of(replies, faults=bool(case.faults))
            if error is not None:
                return self._failed(cell, case, Loss(*error), dollars, dollars)
        # A fault that was asked for and struck nobody makes the cell a sample of something else.
        void = ", ".join(map(str, faults)) if landed.isdisjoint(faults) else ""
        return PlayedCell(
            cell=cell.key,
            turns=tuple(played_turns),
            void=void,
            dollars=dollars,
            times=turn_times,
        )

    async def _score_turns(self, cell: Cell, case: Case, played: PlayedCell) -> FinishedCell:
        """The end of a cell that is a sample, if every judge has a verdict on it."""
        scored_again = bool(cell.stored)
        # What its turns cost was booked when they were played, if that was under the same key.
        is_booked = scored_again and played.cell == cell.key
        dollars = None if is_booked else played.dollars
        text = played.model_dump_json() if cell.turn and not scored_again else ""
        bills: list[Usage] = []
        lines: list[str] = []
        try:
            for turn in played.turns:
                judgement = NOTHING
                if not played.void:
                    judgement = await judge_turn(
                        self._spec, self._judge_kits, cell, case, turn.observation, bills
                    )
                scores = scores_of(case, turn.observation, self._rules)
                scores |= await own_scores(self._own_judges, case, turn.observation)
                lines.append(self._line(cell, case, played, turn, scores, judgement))
        except VerdictLost as lost:
            return self._failed(cell, case, lost.loss, dollars, played.dollars, total(bills), text)
        return FinishedCell(
            cell.key,
            "".join(lines),
            json.dumps({"cell": cell.key, "turns": played.times}) + "\n",
            known_sum((dollars, self._cost(total(bills)))),
            turn=cell.turn,
            played=text,
            scored_again=scored_again,
        )

    def _names(self, cell: Cell, case: Case) -> dict[str, Any]:
        """What every line of a cell begins with."""
        way = dict(zip(AXES, cell.way, strict=True))
        return {"kind": self._kinds[cell.model], **way, "case": case.id, "repeat": cell.repeat}

    def _failed(
        self,
        cell: Cell,
        case: Case,
        loss: Loss,
        dollars: float | None,
        dollars_of_turns: float | None = None,
        judging: Usage = NOTHING.usage,
        played: str = "",
    ) -> FinishedCell:
        """The end of a cell that is no sample; what it cost stays spent, and `played` stays stored.

        `dollars` were spent just now, `dollars_of_turns` whenever they were played.
        """
        row = {
            **self._names(cell, case),
            "domain": case.domain,
            "turns": len(case.scored),
            "error_class": loss.error_class,
            "error": loss.line,
            "cost": dollars_of_turns,
            **bill(judging),
            "cell": cell.key,
        }
        return FinishedCell(
            cell.key,
            json.dumps(row) + "\n",
            "",
            known_sum((dollars, self._cost(judging))),
            loss.error_class,
            loss.blamed,
            turn=cell.turn,
            played=played,
        )

    async def _host_of_cell(
        self, cell: Cell, case: Case, store: TransientStore | SqliteStore
    ) -> Kit:
        """The host with the cell's own store and track, once its provider takes another request."""
        host = await self.host(cell, faults=bool(case.faults))
        cassette = host.cassette
        if cassette is not None:
            cassette = cassette.track(track(self._spec, cell))
        if case.live or cassette is not None:
            host = replace(host, store=store, cassette=cassette)
        # A turn that waits at the gate would use up its own time.
        gate = host.team.orchestrator.model.gate
        if gate is not None and not self._spec.replayed:
            await gate.opened()
        return host

    async def host(self, cell: Cell, *, faults: bool) -> Kit:
        """The kit that a cell's turns run on, with the team of its pattern and a store that forgets."""
        key = (cell.model, cell.prompt, cell.setting, faults, cell.pattern)
        if key not in self._hosts:
            kit = await self._kit(cell, faults=faults)
            team = kit.stages.team(self._patterns[cell.pattern])
            if self._spec.grid.sub_agents == "stubs":
                cards = team.orchestrator.sub_cards.values()
                team = team.with_agents({card.id: Stub(card) for card in cards})
            self._hosts[key] = replace(kit, team=team, store=self.store)
        return self._hosts[key]

    async def _kit(self, cell: Cell, *, faults: bool) -> Kit:
        key = (cell.model, cell.prompt, cell.setting, faults)
        # Cells of one way begin together, and its kit is opened once.
        async with self._lock:
            if key not in self._kits:
                deck = self._spec.decks[cell.prompt, cell.setting]
                deck = replace(deck, models=self._spec.deck.models)
                if self._spec.grid.sub_agents != "world":
                    deck = with_simulated_tools(deck)
                lead = deck.settings.orchestrator
                other_model = self._spec.grid.others
                models: Models = cell.model
                if other_model is not None:
                    models = {lead: cell.model, "*": other_model, "helper": other_model}
                context = self._open(models=models, deck=deck, faults=faults)
                self._kits[key] = await self._stack.enter_async_context(context)
        return self._kits[key]

    def _load_system(self, name: str) -> None:
        """Loads a whole system, unless it is there. Raises KitError for what is none."""
        if name in self._systems:
            return
        agents: set[str] = set()
        for case in self._spec.cases:
            agents |= case.agents
        models = load_models(HOME / "cards" / "models.yaml").values()
        self._systems[name] = System(
            name=name,
            bridge=self._spec.systems[name].bridge(),
            agents=agents,
            prices={model.name or model.key: model for model in models},
            limits=self._spec.grid.limits,
        )

    async def _bind_judges(self) -> None:
        deck = judge_deck(self._spec.deck.models)
        for name, judge in self._spec.grid.judges.items():
            context = self._open(models=judge.model, deck=deck, faults=False)
            self._judge_kits[name] = await self._stack.enter_async_context(context)

    def _cost(self, record: TurnRecord | Usage) -> float | None:
        """What a turn, or its judges, count for against the limit."""
        if record.cost is not None:
            return record.cost
        return self._spec.grid.limits.assumed(record.input_tokens, record.output_tokens)

    def _record(self, store: TransientStore | SqliteStore, reply: Reply) -> TurnRecord:
        if isinstance(store, TransientStore):
            record = store.take(reply.turn_id)
        else:
            record = store.turn(reply.turn_id, OPERATOR)
        return cast(TurnRecord, record)

    def _fields(
        self, case: Case, observation: Observation, reply: Reply, record: TurnRecord
    ) -> dict[str, Any]:
        """What a turn's line says beside its names and its scores."""
        counts: dict[str, float | None] = {name: getattr(record, name) for name in COUNTS}
        # The sum of those that said something is not what the turn took.
        if reply.usage.untold_tokens:
            counts["input_tokens"] = counts["output_tokens"] = None
        if reply.usage.untold_costs:
            counts["cost"] = None
        expected = case.turns[observation.turn].expected
        fields = turn_fields(
            case,
            observation,
            counts,
            failed=record.failed,
            failsafe=fate(expected, observation.called, reply),
            truncated=reply.truncated,
        )
        if reply.usage.estimated:
            fields["estimated"] = True
        hops = hops_of(reply.events)
        if hops:
            fields |= hop_counts(hops)
        # Real time is no part of a result: it stands in timings.jsonl.
        if self._virtual:
            fields |= _times(record, reply)
        return fields

    def _line(
        self,
        cell: Cell,
        case: Case,
        played: PlayedCell,
        turn: PlayedTurn,
        scores: Mapping[str, float | None],
        judgement: Judgement,
    ) -> str:
        row = {**self._names(cell, case), **turn.fields}
        if played.void:
            row["void"] = f"{played.void} never happened"
            row["scores"] = dict.fromkeys(scores)
        else:
            row["scores"] = {**scores, **judgement.scores}
        row |= judgement.fields
        row["cell"] = cell.key
        if played.cell != cell.key:
            row["played_as"] = played.cell
        return json.dumps(row) + "\n"


def _times(record: TurnRecord, reply: Reply) -> dict[str, float | None]:
    """Seconds of a turn by its own clock: whole, to the first text, to decide whom to ask, of pauses of its
    model calls and of its calls elsewhere."""
    rounded: dict[str, float | None] = {}
    for name, seconds in (
        ("seconds", record.seconds),
        ("ttft", record.ttft),
        ("routing_seconds", record.measures.routing),
    ):
        rounded[name] = None if seconds is None else round(seconds, 6)
    pauses = [event.body.seconds for event in reply.events if event.body.kind == "model_pause"]
    if pauses:
        rounded["paused"] = round(sum(pauses), 6)
    hops = hops_of(reply.events)
    if hops:
        return rounded | hop_times(hops)
    return rounded
