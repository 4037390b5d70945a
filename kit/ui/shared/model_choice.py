"""Which models of a deck can be used here, what has to be set for the others, and what can be made to fail."""

from collections.abc import Mapping, Sequence

import streamlit as st

from kit.core.extra import ROUTER, install_line
from kit.core.fault import Fault, kinds_of
from kit.core.model import ModelSpec
from kit.models.langchain import missing_packages
from kit.runtime.team import Team
from kit.settings import Settings
from kit.ui.shared.turn_facts import fault_words
from kit.ui.shared.visitor import is_operator
from kit.wire import Kit


def missing_variable(spec: ModelSpec, settings: Settings) -> str:
    """Returns the variable that has to be set, or the line to be run, before a model can be used;
    empty when it can be."""
    if spec.embedder == "minilm":
        return install_line(*ROUTER)
    if spec.provider in ("offline", "simulated"):
        return ""
    if spec.is_self_contained:
        if spec.api_key_env and not settings.variables.get(spec.api_key_env):
            return spec.api_key_env
        if spec.model:
            return missing_packages(spec.model)
        return ""
    if spec.key == "local":
        if settings.openai_base_url:
            return ""
        return "OPENAI_BASE_URL"
    if settings.has_model:
        return ""
    return "OPENAI_API_KEY"


def usable_models(kit: Kit) -> list[str]:
    """Returns the keys of the models that can be used here, the kit's own first."""
    default = kit.team.orchestrator.model.spec.key
    usable = (
        key for key, spec in kit.deck.models.items() if not missing_variable(spec, kit.settings)
    )
    return list(dict.fromkeys([default, *usable]))


def draw_missing(models: Mapping[str, str]) -> None:
    """Draws a line for each variable that has to be set; `models`: key -> variable, empty for a
    model that can be used."""
    for variable in sorted(set(models.values()) - {""}):
        if " " in variable:
            verb = "run"
        else:
            verb = "set"
        keys = (key for key, name in models.items() if name == variable)
        st.caption(f"With `{variable}` {verb}: {', '.join(keys)}")


def draw_faults(team: Team, faults: Sequence[str]) -> list[str] | None:
    """Draws what can be made to fail, with `faults` chosen, and returns what is; None, and nothing
    drawn, for visitors who may not choose."""
    if not is_operator():
        return None
    choices: list[str] = []
    for agent in team.agents:
        for kind in kinds_of(agent, team.root):
            choices.append(str(Fault(where=agent, kind=kind)))
    # The browser tells choices apart by their words, and `hang` has those of `hang:3`.
    faults_by_words = {fault_words(fault): fault for fault in (*choices, *faults)}
    chosen = st.multiselect(
        "Broken on purpose",
        list(faults_by_words),
        list(map(fault_words, faults)),
        placeholder="Nothing",
        width=320,
    )
    return [faults_by_words[words] for words in chosen]
