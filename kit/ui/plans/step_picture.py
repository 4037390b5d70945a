"""The steps of a plan as lanes on one time axis: who waited for whom, and how long each took."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kit.core.display.count import enumeration, many
from kit.core.documents.document import AgentEvent, Plan, PlanStep
from kit.planning.plan import OVER, acts
from kit.ui.canvas.drawing import axis_end, canvas_html
from kit.ui.canvas.lane import BEYOND, Lane, Mark, Phrase
from kit.ui.plans.plan_words import is_without_plan, step_state, worked_seconds

LONGEST_PAUSE = 5.0
"""Seconds in which nobody worked that the axis still shows: a plan that was taken up a day later is no day long."""


class _Work(NamedTuple):
    start: float
    end: float | None
    """None while it goes on."""


class _Axis:
    """Turns moments into seconds since the plan began, long pauses left out."""

    def __init__(self, start: float, works: Sequence[_Work], now: float):
        self._pauses: list[tuple[float, float]] = []
        self._start = start
        worked_until = start
        for work in sorted(works, key=lambda work: work.start):
            if work.start - worked_until > LONGEST_PAUSE:
                self._pauses.append((work.start, work.start - worked_until - LONGEST_PAUSE))
            worked_until = max(worked_until, now if work.end is None else work.end)
        self.end = self.at(worked_until)

    def at(self, moment: float) -> float:
        """Returns the seconds on the axis of a moment."""
        seconds = moment - self._start
        for start, pause in self._pauses:
            if moment >= start:
                seconds -= pause
        return seconds


def picture_html(plan: Plan, events: Sequence[AgentEvent], is_held: bool, planner: str) -> str:
    """Returns the picture of a plan as it stands now: the planner, and a lane for each of its steps."""
    now = time.time()
    works = _works(plan, events, is_held)
    plannings = _plannings(events, now if is_held else None)
    times = _Axis(plan.created_at, [*plannings, *works.values()], now)
    lanes = [_planner_lane(plan, planner, plannings, times)]
    for step in plan.steps:
        lanes.append(_lane(plan, step, works, is_held, times))
    end = axis_end(times.end, fine=plan.status in OVER)
    return canvas_html(lanes, end, "Steps of the plan", now=times.end, full=False)


def _plannings(events: Sequence[AgentEvent], now: float | None) -> list[_Work]:
    """Returns when the planner was at work: once, and once more for each time that the rest was planned anew.

    `now`: when one that has not ended is looked at; None where nobody works on the plan any more.
    """
    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    for event in events:
        if event.task_id and event.event_type == "subagent_a.spawned":
            starts[event.task_id] = event.ts
        elif event.task_id in starts:
            ends[event.task_id] = event.ts
    return [_Work(start, ends.get(task_id, now or start)) for task_id, start in starts.items()]


def _planner_lane(plan: Plan, planner: str, plannings: Sequence[_Work], times: _Axis) -> Lane:
    seconds = 0.0
    marks: list[Mark] = []
    for work in plannings:
        end = work.end or work.start
        seconds += end - work.start
        marks.append(Mark(name="planning", start=times.at(work.start), end=times.at(end)))
    verdict = f"wrote {many(len(plan.steps), 'step')} {seconds:.1f} s"
    if is_without_plan(plan):
        verdict = f"found no other way {seconds:.1f} s"
    elif len(plannings) > 1:
        verdict = f"planned {many(len(plannings), 'time')} {seconds:.1f} s"
    return Lane(
        kind="orchestrator",
        label=planner,
        start=0.0,
        end=marks[-1].end if marks else 0.0,
        marks=tuple(marks),
        verdicts=(Phrase(text=verdict, start=0.0),),
    )


def _works(plan: Plan, events: Sequence[AgentEvent], is_held: bool) -> dict[int, _Work]:
    """Returns the steps that have begun, with when they were worked on."""
    works: dict[int, _Work] = {}
    for step in plan.steps:
        if step.started_at is None:
            continue
        seconds = worked_seconds(step, events)
        end = None if seconds is None else step.started_at + seconds
        if end is None and step_state(plan, step, is_held).tone != "busy":
            end = step.started_at
        works[step.step_index] = _Work(step.started_at, end)
    return works


def _lane(
    plan: Plan, step: PlanStep, works: Mapping[int, _Work], is_held: bool, times: _Axis
) -> Lane:
    number = step.step_index
    state = step_state(plan, step, is_held)
    work = works.get(number)
    verdict = state.text
    start = BEYOND
    end: float | None = BEYOND
    used_at = None
    if work is not None:
        start = times.at(work.start)
        end = None
        if work.end is not None:
            end = times.at(work.end)
            verdict += f" {work.end - work.start:.1f} s"
            readers = [
                other.step_index for other in plan.steps if number in _waits_for(plan, other)
            ]
            first_uses = [times.at(works[reader].start) for reader in readers if reader in works]
            used_at = min(first_uses, default=None)
    waits = _waits_for(plan, step)
    # Whoever will never begin waits for nobody.
    if waits and (work is not None or plan.status not in (*OVER, "cancelled")):
        noun = "step" if len(waits) == 1 else "steps"
        verdict += f", after {noun} {_numbers(waits)}"
    return Lane(
        kind="agent",
        label=f"{number}. {step.task}",
        tone=state.tone,
        start=start,
        end=end,
        used_at=used_at,
        verdicts=(Phrase(text=verdict, start=0.0),),
    )


def _waits_for(plan: Plan, step: PlanStep) -> tuple[int, ...]:
    """Returns the steps that one waits for: those whose outputs it works on, and where it acts all before it."""
    if acts(plan, step):
        return tuple(other.step_index for other in plan.steps if other.step_index < step.step_index)
    return step.inputs


def _numbers(steps: Sequence[int]) -> str:
    if len(steps) > 2:
        return f"{steps[0]} to {steps[-1]}"
    return enumeration([f"{step}" for step in steps])
