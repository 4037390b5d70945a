"""Puts the steps of a plan together: a skill for each part of a task, and before it what gives the
ids that it takes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.models.offline.json_schema import kind_of, properties_of
from kit.models.offline.plan.skill import (
    Skill,
    calls_for,
    count_in,
    projection,
    shape_at,
    supplies,
    values_in,
    vocabulary,
)
from kit.models.offline.plan.step_words import step_words
from kit.models.offline.routing import Routes, Situation, decide
from kit.models.offline.similarity import index, spoken

_FRAME = re.compile(r"^\W*(?:for|of|among)\b[^:]*:\s*", re.I)
"""What a task says of all its parts beforehand."""
_EACH = re.compile(r"\b(?:each|every|all)\b", re.I)
ALIKE = 0.6
"""The share of the best skill's closeness that another must have to stand in its place."""
_ROWS = re.compile(r"array<\{(.*)\}>")


@dataclass
class _Step:
    """A step before it has its number."""

    skill: Skill
    lead: str
    values: dict[str, Any]
    shape: dict[str, str]
    source: "_Step | None" = None
    places: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class StepChain:
    """Puts the steps of one task together."""

    task: str
    skills: Sequence[Skill]
    drafts: list[_Step] = field(default_factory=list[_Step])

    def __post_init__(self) -> None:
        self.skills = [skill for skill in self.skills if calls_for(self.task, skill, self.skills)]
        self.own = vocabulary(self.skills)

    def steps(self, brief: Mapping[str, Any]) -> list[dict[str, Any]] | str:
        """The steps, numbered; or why there are none."""
        documents = tuple((spoken(skill.name), skill.words) for skill in self.skills)
        if documents:
            decision = decide(Situation(_FRAME.sub("", self.task), documents), len(documents))
        else:
            decision = None
        if not isinstance(decision, Routes):
            return "none of the skills that can be found fits this task"
        for part in decision.parts:
            if reason := self.add(
                self.taker(self.skills[part.tool], part.text, index(documents).score(part.text)),
                part.text,
            ):
                return reason
        if len(self.drafts) > int(brief["steps_left"]):
            return f"it takes {len(self.drafts)} steps, and {brief['steps_left']} are left"
        return [self.document(step, int(brief["first_step"])) for step in self.drafts]

    def values(self, skill: Skill, text: str | None = None) -> dict[str, Any]:
        """The arguments of a skill that a text names, or the whole task."""
        return values_in(self.task if text is None else text, skill, self.own)

    def taker(self, skill: Skill, text: str, scores: Iterable[float]) -> Skill:
        """Of a skill and those about as close to a text, the one that with all it stands on takes
        up most of what is said."""
        fit = {one.name: score for one, score in zip(self.skills, scores, strict=True)}
        alike = [one for one in self.skills if fit[one.name] >= ALIKE * fit[skill.name]]
        return max(alike, key=lambda one: (len(self.reach(one, text)), fit[one.name]))

    def add(self, skill: Skill, text: str) -> str | None:
        """Adds what one part of the task needs; returns why that cannot be done."""
        values = self.values(skill, text)
        shape = projection(skill, text)
        if skill.limit and (count := count_in(text)):
            values[skill.limit] = count
        lacking: list[str] = []
        for name in skill.required:
            if name not in values:
                lacking.append(name)
        if not lacking:
            self.drafts.append(self.filtered(_Step(skill, text, values, shape)))
            return None
        missing, *more = lacking
        spec = properties_of(skill.input)[missing]
        supplier = self.supplier(skill, missing)
        if supplier is None or more:
            return (
                f"{skill.name} needs {' and '.join(map(spoken, lacking))}, which neither the "
                f"task nor another skill gives"
            )
        if kind_of(spec) == "array":
            source = self.source(*supplier, None)
            self.drafts.append(_Step(skill, text, values, shape, source, {missing: supplier[1]}))
            return None
        each = _EACH.search(self.task) is not None
        count = count_in(self.task, spoken(missing).removesuffix(" id")) or (
            count_in(self.task) if each else None
        )
        if count is None and each:
            return f"{skill.name} takes one {spoken(missing)} at a time, and how many there are is not known beforehand"
        source = self.source(*supplier, count or 1)
        for number in range(count or 1):
            if count:
                lead = f"{text.rstrip('.?! ')}, number {number + 1}"
            else:
                lead = text
            place = supplier[1].replace("[]", f"[{number}]", 1)
            self.drafts.append(_Step(skill, lead, values, shape, source, {missing: place}))
        return None

    def supplier(self, skill: Skill, name: str) -> tuple[Skill, str] | None:
        """The skill that takes up most of what the task says among those that give an argument, and the place of it."""
        spec = properties_of(skill.input)[name]
        table = index(tuple((spoken(one.name), one.words) for one in self.skills))
        fit = dict(zip([one.name for one in self.skills], table.score(self.task), strict=True))
        others: list[Skill] = []
        for one in self.skills:
            if one is not skill and self.free(one) and (self.values(one) or not skill.acts):
                others.append(one)
        able: list[tuple[Skill, str]] = []
        for one in others:
            place = supplies(one, name, spec)
            if place:
                able.append((one, place))
        return max(
            able,
            key=lambda pair: (len(self.reach(pair[0], self.task)), fit[pair[0].name]),
            default=None,
        )

    def free(self, skill: Skill) -> bool:
        """Whether a skill can be called with what the task says."""
        return set(skill.required) <= self.values(skill).keys()

    def reach(self, skill: Skill, text: str) -> set[str]:
        """The arguments that a text names for a skill, and the task for those that it may stand on."""
        own = set(self.values(skill, text))
        suppliers: list[tuple[Skill, str] | None] = []
        for name in skill.required:
            if name not in own:
                suppliers.append(self.supplier(skill, name))
        others: list[set[str]] = []
        for supplier in suppliers:
            if supplier:
                others.append(self.reach(supplier[0], self.task))
        return own.union(*others, *(extra for _, _, _, extra in self.filters(skill)))

    def filters(self, skill: Skill) -> Iterator[tuple[str, Skill, str, set[str]]]:
        """Yields the lists of ids that a skill takes, with a skill that gives them and narrows them
        by more than it can."""
        for name, spec in properties_of(skill.input).items():
            if kind_of(spec) != "array" or name in self.values(skill):
                continue
            for one in self.skills:
                extra = set(self.values(one)) - properties_of(skill.input).keys()
                if (
                    one is not skill
                    and extra
                    and self.free(one)
                    and (place := supplies(one, name, spec))
                ):
                    yield name, one, place, extra

    def filtered(self, step: _Step) -> _Step:
        """The step over the ids of another that comes first, where the task narrows these by what
        its own skill cannot."""
        choice = max(self.filters(step.skill), key=lambda way: len(way[3]), default=None)
        if choice is None:
            return step
        name, skill, place, _ = choice
        step.source = self.source(skill, place, None, plain=True)
        step.places = {name: place}
        return step

    def source(self, skill: Skill, place: str, count: int | None, *, plain: bool = False) -> _Step:
        """The step that gives what stands at a place: `count` rows of it, or all. One that is there
        already is used again."""
        limit = properties_of(skill.input).get(skill.limit or "", {})
        most = count or limit.get("maximum")
        old = next(
            (
                step
                for step in self.drafts
                if step.skill is skill and not step.places.keys() & set(skill.required)
            ),
            None,
        )
        step = old or _Step(skill, "", self.values(skill), {})
        step.shape = _both(step.shape, shape_at(skill, place))
        if skill.limit and most:
            step.values[skill.limit] = max(
                most, step.values.get(skill.limit, limit.get("default", 0) if old else 0)
            )
        if old is None:
            self.drafts.append(step if plain else self.filtered(step))
        return step

    def document(self, step: _Step, first: int) -> dict[str, Any]:
        number: dict[int, int] = {}
        for at, one in enumerate(self.drafts):
            number[id(one)] = first + at
        users: list[int] = []
        for draft in self.drafts:
            if draft.source is step:
                users.append(number[id(draft)])
        if step.source:
            source = number[id(step.source)]
        else:
            source = None
        several = f"step{'s' * (len(users) > 1)} {_enumeration(users)}"
        lead = step.lead or f"Get what {several} will work on"
        reason = " and ".join(
            filter(None, ["for the answer" if step.lead else "", f"for {several}" if users else ""])
        )
        return {
            "step": number[id(step)],
            "task": step_words(lead, step.values, step.places, source),
            "skills": [step.skill.name],
            "return_spec": {"shape": step.shape, "reason": reason},
            **({"input_from_step": source} if source else {}),
        }


def _both(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Two shapes of one output in one."""
    shape = dict(one)
    for name, part in other.items():
        mine, more = (_ROWS.fullmatch(text) for text in (shape.get(name, part), part))
        if mine and more:
            fields = dict.fromkeys((*mine[1].split(", "), *more[1].split(", ")))
            shape[name] = f"array<{{{', '.join(fields)}}}>"
    return shape


def _enumeration(numbers: Sequence[int]) -> str:
    if numbers:
        return " and ".join(filter(None, [", ".join(map(str, numbers[:-1])), str(numbers[-1])]))
    return ""
