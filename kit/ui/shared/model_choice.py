"""Which models of a deck can be used here, and what can be made to fail."""

from collections.abc import Callable, Sequence

import streamlit as st

from kit.core.extra import ROUTER, install_line
from kit.core.fault import Fault, kinds_of
from kit.core.model import ModelSpec
from kit.core.record import TurnRecord
from kit.core.value import Value
from kit.models.langchain import missing_packages
from kit.patterns import patterns_of
from kit.runtime.team import Team
from kit.settings import Settings
from kit.ui.shared.turn_facts import fault_words
from kit.ui.shared.visitor import is_operator
from kit.ui.shared.wording import label, model_words
from kit.wire import Kit


def is_usable(spec: ModelSpec, settings: Settings) -> bool:
    """Whether a model has the key, the address and the packages that it needs."""
    if spec.embedder == "minilm":
        return not install_line(*ROUTER)
    if spec.provider in ("offline", "simulated"):
        return True
    if spec.is_self_contained:
        has_key = not spec.api_key_env or bool(settings.variables.get(spec.api_key_env))
        return has_key and not (spec.model and missing_packages(spec.model))
    if spec.key == "local":
        return bool(settings.openai_base_url)
    return settings.has_model


def usable_models(kit: Kit) -> list[str]:
    """Returns the keys of the models that can be used here, the kit's own first."""
    default = kit.team.orchestrator.model.spec.key
    usable = (key for key, spec in kit.deck.models.items() if is_usable(spec, kit.settings))
    return list(dict.fromkeys([default, *usable]))


class Choice(Value):
    """How a turn is asked once more."""

    pattern: str
    model: str
    faults: tuple[str, ...] | None
    """None for visitors who may not choose."""


def draw_choice(kit: Kit, turn: TurnRecord, faults: Sequence[str]) -> Choice:
    """Draws pattern, model and failures of a turn, which was made to fail by `faults`, and returns what is chosen."""
    patterns = list(patterns_of(kit.deck))
    models = usable_models(kit)
    return Choice(
        pattern=draw_select("Pattern", patterns, turn.pattern, label),
        model=draw_select("Model", models, turn.model, model_words),
        faults=draw_faults(kit.team, faults),
    )


def draw_select(
    title: str, options: list[str], default: str, words: Callable[[str], str] = str
) -> str:
    """Draws a list that shows the default, where that is one of its options."""
    index = options.index(default) if default in options else 0
    return st.selectbox(title, options, index=index, format_func=words, width=190)


def every_fault(team: Team) -> list[Fault]:
    """Returns all that can be made to fail in a team."""
    choices: list[Fault] = []
    for agent in team.agents:
        for kind in kinds_of(agent, team.root):
            choices.append(Fault(where=agent, kind=kind))
    return choices


def draw_faults(team: Team, faults: Sequence[str]) -> tuple[str, ...] | None:
    """Draws what can be made to fail, with `faults` chosen, and returns what is; None, and nothing
    drawn, for visitors who may not choose."""
    if not is_operator():
        return None
    choices = map(str, every_fault(team))
    # The browser tells choices apart by their words, and `hang` has those of `hang:3`.
    faults_by_words = {fault_words(fault): fault for fault in (*choices, *faults)}
    chosen = st.multiselect(
        "Broken on purpose",
        list(faults_by_words),
        list(map(fault_words, faults)),
        placeholder="Nothing",
        width=320,
    )
    return tuple(faults_by_words[words] for words in chosen)
