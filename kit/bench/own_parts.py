"""What a grid made in Python brings as objects: models, patterns, judges, each by name and with an
identity for its cells."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from kit.bench.identity import (
    code_identity,
    digest,
    model_identity,
    plain_or_name,
    stable,
    tool_identity,
)
from kit.bench.scoring.judge import Judge, LLMJudge
from kit.bench.scoring.scorers import SCORERS, Scorer
from kit.bench.systems.source import code_digest
from kit.bridges.http import is_address
from kit.compose.deck import Deck
from kit.compose.models import spec_of_model
from kit.core.errors import DataError
from kit.core.model import ModelSpec
from kit.patterns import PATTERNS, modes_of
from kit.runtime.pattern import Pattern, Run
from kit.runtime.team import Model
from kit.tools.deck_tools import DeckTools

T = TypeVar("T")
Names = Mapping[str, str]
GivenModels = Mapping[str, Model | ModelSpec] | Iterable[Model | ModelSpec]
GivenJudges = Mapping[str, Scorer | Judge] | Iterable[Scorer | Judge]


@dataclass(frozen=True)
class OwnParts:
    """What a grid has beside names of the kit, its deck and models.yaml."""

    models: Mapping[str, ModelSpec] = field(default_factory=dict[str, ModelSpec])
    """What is known of each model object."""
    patterns: Mapping[str, Pattern] = field(default_factory=dict[str, Pattern])
    judges: Mapping[str, Scorer | Judge] = field(default_factory=dict[str, Scorer | Judge])
    identities: Names = field(default_factory=dict[str, str])
    """Kind and name, such as `pattern mine` -> a digest of what it is."""

    def identity(self, kind: str, names: Iterable[str]) -> str:
        """Digests of the own parts among these names; empty where everybody knows them all."""
        return "".join(self.identities.get(f"{kind} {name}", "") for name in names)

    def with_code_of(self, deck: Deck) -> "OwnParts":
        """The same, with the identities of the deck's own patterns, guards and agents: an edit of
        their code makes other cells."""
        identities = dict(self.identities)
        for name in deck.code.patterns:
            identities[f"pattern {name}"] = _pattern_identity(modes_of(deck)[name])
        for name, guard in deck.code.guards.items():
            identities[f"guard {name}"] = digest(code_identity(guard))
        for reference in deck.code.agents:
            # Of a service nothing is known but its address, which stands on its card.
            if not is_address(reference):
                identities[f"agent {reference}"] = code_digest([reference], deck.code.folder)
        return replace(self, identities=identities)


NONE = OwnParts()
"""Of a grid that a file says."""


def own_models(
    models: GivenModels,
) -> tuple[list[str], dict[str, Model], dict[str, ModelSpec], Names]:
    """The names of all models; the objects among them; what is known of these and of given specs;
    the identities of objects.

    Raises DataError for two of one name, and for an object that no other run could know again.
    """
    names: list[str] = []
    objects = dict[str, Model]()
    specs = dict[str, ModelSpec]()
    identities = dict[str, str]()
    for given_name, model in _pairs(models):
        if isinstance(model, ModelSpec):
            name = given_name or model.key
            # The provider has to be told the name that it knows.
            specs[name] = model.model_copy(update={"key": name, "name": model.name or model.key})
        elif isinstance(model, str):
            name = model
            if given_name not in (None, model):
                raise DataError(
                    f"models: {given_name!r} stands for the key {model!r}; put the key itself in its place"
                )
        else:
            chat, spec = model if isinstance(model, tuple) else (model, spec_of_model(model))
            name = given_name or spec.key
            specs[name] = spec.model_copy(update={"key": name})
            objects[name] = (chat, specs[name])
            identities[f"model {name}"] = digest(
                model_identity(name, chat, named=bool(given_name or chat.name))
            )
        if name in names:
            raise DataError(
                f"models: two are called {name!r}; give them names: models={{'one': ..., 'other': ...}}"
            )
        names.append(name)
    return names, objects, specs, identities


def own_patterns(
    patterns: Iterable[str | Pattern | Run],
) -> tuple[list[str], dict[str, Pattern], Names]:
    """The names of all patterns, those that are one's own, and their identities. Raises DataError
    for what is no pattern."""
    names: list[str] = []
    patterns_given: dict[str, Pattern] = {}
    for pattern in patterns:
        if inspect.iscoroutinefunction(pattern):
            pattern = Pattern(pattern.__name__, pattern)
        if isinstance(pattern, Pattern) and PATTERNS.get(pattern.name) is not pattern:
            if pattern.name in {*PATTERNS, *patterns_given}:
                raise DataError(
                    f"patterns: {pattern.name!r} is the name of another pattern; choose one of your own"
                )
            patterns_given[pattern.name] = pattern
        elif not isinstance(pattern, str | Pattern):
            raise DataError(
                f"patterns: {plain_or_name(pattern)} is neither a name, a Pattern nor an async function (call, ctx)"
            )
        names.append(pattern if isinstance(pattern, str) else pattern.name)
    identities: dict[str, str] = {}
    for name, own_pattern in patterns_given.items():
        identities[f"pattern {name}"] = _pattern_identity(own_pattern)
    return names, patterns_given, identities


def _pattern_identity(pattern: Pattern) -> str:
    code = [code_identity(pattern.run)]
    if pattern.stage is not None:
        code.append(code_identity(pattern.stage))
    return digest(code)


def own_judges(judges: GivenJudges) -> tuple[dict[str, Scorer | Judge], Names]:
    """Scorers and judges by name, and their identities. Raises DataError for a name that is taken."""
    judges_given: dict[str, Scorer | Judge] = {}
    identities: dict[str, str] = {}
    for given_name, judge in _pairs(judges):
        name = given_name or _name_of(judge)
        if name in {*SCORERS, *judges_given}:
            raise DataError(
                f"judges: {name!r} is the name of another scorer; choose one of your own: judges={{'my-judge': ...}}"
            )
        judges_given[name] = judge
        identity = _judge_identity(name, judge, named=given_name is not None)
        identities[f"scorer {name}"] = digest(identity)
    return judges_given, identities


def tools_identity(tools: DeckTools) -> Names:
    """The identity of tools given in Python; empty without any."""
    if tools.tools:
        return {
            "tools ": digest(
                [[name, tool_identity(tool)] for name, tool in sorted(tools.tools.items())]
            )
        }
    return {}


def _pairs(things: Mapping[str, T] | Iterable[T]) -> Iterable[tuple[str | None, T]]:
    """Each with the name that its caller gave it, if one did."""
    if isinstance(things, Mapping):
        return list(cast("Mapping[str, T]", things).items())
    pairs: list[tuple[str | None, T]] = []
    for part in things:
        pairs.append((None, part))
    return pairs


def _name_of(judge: Scorer | Judge) -> str:
    if inspect.isfunction(judge):
        return judge.__name__
    return cast("Judge", judge).rubric.id


def _judge_identity(name: str, judge: Scorer | Judge, *, named: bool) -> Any:
    if callable(judge):
        return code_identity(judge)
    rubric = judge.rubric.model_dump()
    if isinstance(judge, LLMJudge):
        return [rubric, model_identity(name, cast("Any", judge.model), named=False)]
    code = cast("Callable[..., Any]", getattr(judge, "scorer", type(judge)))
    identity = [rubric, code_identity(code)]
    values = {**getattr(judge, "__dict__", {})}
    values.pop("rubric", None)
    values.pop("scorer", None)
    if values:
        identity.append(stable(f"judge {name!r}", "judges", values, named=named))
    return identity
