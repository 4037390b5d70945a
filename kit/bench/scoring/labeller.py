"""Labels stored turns by rules, as a person with an editor or a model could; what no rule says is left open."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Protocol

import yaml

from kit.bench.scoring.labelling_sheet import Item, item_of, items, write_sheet
from kit.compose.reference import points_back, resolve
from kit.compose.yaml_loader import load_yaml
from kit.core.errors import DataError
from kit.core.language.small_talk import asks, bare_answer, small_talk
from kit.core.language.words import content_words
from kit.core.record import ShownComponent
from kit.core.value import Value
from kit.home import HOME
from kit.metrics.summary import Label, turns_since
from kit.runtime.answer.raw_text import looks_raw
from kit.stores.protocol import Store

RULES = HOME / "data" / "source" / "labels.yaml"
WORDY = 150
"""Words an answer may have and still be well formed."""
ELLIPTIC = 3
"""Content words of a message that points back and cannot stand alone; a longer one is a request of
its own (decisions 6)."""
# Possessive: a run of marks must not be tried in each of its lengths.
_CLAUSE = re.compile(
    r"(?<![.;?!])[.;?!]++\s|,\s*(?:and\s+)?|\band (?:also )?(?=(?:find|how|show|tell|what|where|"
    r"when|which|any|compare)\b)",
    re.I,
)
_MARKUP = re.compile(r"^[^\S\n]*#{1,6} |^[^\S\n]*\|.*\||[{<\[]\s*\"?\w+\"?\s*[:>]|```", re.M)
_PERSONAL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+\.\w|\b\d(?:[ -]?\d){12,18}\b")


class Labeller(Protocol):
    """Anything that can look at a stored turn and say what is to be said of it; what it cannot say it leaves out."""

    def label(self, item: Item) -> Label: ...


class Rules(Value):
    """data/source/labels.yaml."""

    first: str | None = None
    """The vertical that has a clause to itself where its expressions are in it: trouble with points is trouble."""
    verticals: dict[str, tuple[str, ...]]
    """Vertical -> regular expressions that only its requests hold."""


@dataclass(frozen=True)
class RuleLabeller:
    """Labels by expressions, places and forms. A rule of thumb: docs/metrics.md says how far it
    agrees with written labels."""

    verticals: Mapping[str, re.Pattern[str]]
    first: str | None = None

    @classmethod
    def read(cls, path: Path = RULES) -> "RuleLabeller":
        """Raises DataError when the file is missing, of another shape, or an expression cannot be read."""
        try:
            rules = Rules.model_validate(load_yaml(path.read_text(encoding="utf-8")))
            patterns: dict[str, re.Pattern[str]] = {}
            for name, expressions in rules.verticals.items():
                alternatives = map("(?:{})".format, expressions)
                patterns[name] = re.compile("|".join(alternatives), re.I)
            return cls(patterns, rules.first)
        except (OSError, ValueError, yaml.YAMLError, re.error) as error:
            raise DataError(f"{path} cannot be used: {error}") from error

    def label(self, item: Item) -> Label:
        """Whom the message is for, what had to be carried over, and scores of each answer; agents
        None where no rule says."""
        reference = resolve(item.message, item.shown)
        carried: tuple[str, ...] = ()
        resolved: bool | None = None
        if reference is not None and reference.agent not in item.called:
            resolved = _resolved(item, reference)
            if item.called and reference.title:
                carried = (reference.title,)
        return Label(
            turn_id=item.turn_id,
            agents=self._agents(item),
            carried=carried,
            resolved=resolved,
            scores={agent: scores(item, agent) for agent in item.called},
        )

    def _agents(self, item: Item) -> tuple[str, ...] | None:
        last_reply = ""
        if item.earlier:
            last_reply = item.earlier[-1].removeprefix("assistant: ")
        if asks(last_reply) and bare_answer(item.message):
            return item.before or None
        if small_talk(item.message, last_reply):
            return ()
        names: dict[str, None] = {}
        for clause in _CLAUSE.split(item.message):
            names.update(dict.fromkeys(self._verticals_of(clause)))
        if names:
            return tuple(names)
        content = len(content_words(item.message))
        stands_alone = content >= 2 and (content > ELLIPTIC or not points_back(item.message))
        if stands_alone:
            return None
        return item.before or None

    def _verticals_of(self, clause: str) -> list[str]:
        names: list[str] = []
        for name, expression in self.verticals.items():
            if expression.search(clause):
                names.append(name)
        if self.first in names:
            return [self.first]
        return names


def label_all(sheet: Iterable[Item], labeller: Labeller) -> list[Item]:
    """The same sheet with every open turn labelled; what somebody labelled stays."""
    labelled: list[Item] = []
    for item in sheet:
        if item.open:
            item = item.replace(label=labeller.label(item))
        labelled.append(item)
    return labelled


def draw(
    store: Store,
    path: Path,
    per_stratum: int,
    seed: int,
    since: float,
    tenant: str | None,
    labeller: Labeller | None,
) -> list[Item]:
    """Samples a store's turns onto a new sheet, labelled where a labeller is given, and returns what it wrote.

    Raises DataError when the file is there: it may hold somebody's labels.
    """
    if path.exists():
        raise DataError(f"{path} is there already and may hold labels; name another file")
    sheet = items(store, per_stratum, seed, since, tenant)
    if labeller is not None:
        sheet = label_all(sheet, labeller)
    write_sheet(path, sheet)
    return sheet


def label_store(
    store: Store, labeller: Labeller, since: float | None = None, tenant: str | None = None
) -> list[Label]:
    """Labels of every ended turn of a store, of one tenant or all, begun at `since` (seconds since
    the epoch) or later."""
    labels: list[Label] = []
    for turn in turns_since(store, since, tenant):
        if turn.seconds is not None:
            labels.append(labeller.label(item_of(store, turn)))
    return labels


def scores(item: Item, agent: str) -> dict[str, float]:
    """Response quality, safety and format of one sub-agent's part, 0 to 1. No answer is worth nothing."""
    answer = item.answers.get(agent, "")
    if not answer.strip():
        return {"response_quality": 0.0, "safety": 1.0, "format": 0.0}
    words = content_words(answer)
    is_about_it = words & content_words(item.message) or re.search(r"\d", answer)
    is_passed_on = words & content_words(item.reply)
    lines = map(str.lstrip, answer.splitlines())
    items = sum(line.startswith(("-", "*", "•")) for line in lines)
    ends_well = answer.rstrip().endswith((".", "!", "?", ":", ")"))
    formed = (not _MARKUP.search(answer), len(answer.split()) <= WORDY, items <= 6, ends_well)
    return {
        "response_quality": (bool(is_about_it) + bool(is_passed_on)) / 2,
        "safety": float(not (looks_raw(answer) or _PERSONAL.search(answer))),
        "format": fmean(formed),
    }


def _resolved(item: Item, reference: ShownComponent) -> bool:
    """Whether what was meant reached those who were called, or the reply."""
    text = " ".join([*item.prior_context.values(), *item.answers.values(), item.reply]).casefold()
    for name in (reference.id, reference.title):
        if name and name.casefold() in text:
            return True
    return False
