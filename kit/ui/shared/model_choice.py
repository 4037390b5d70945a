"""Which models of a deck can be used here, and what has to be set for the others."""

from collections.abc import Mapping

import streamlit as st

from kit.core.extra import ROUTER, install_line
from kit.core.model import ModelSpec
from kit.models.langchain import missing_packages
from kit.settings import Settings
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
