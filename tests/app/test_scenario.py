"""The scenario: which models it offers."""

import pytest

from kit.core.model import OFFLINE, ModelSpec
from kit.settings import Settings
from kit.ui.shared.model_choice import is_usable

OPENAI, LOCAL = ModelSpec(key="gpt-x", provider="openai"), ModelSpec(key="local", provider="openai")


@pytest.mark.parametrize(
    ("settings", "usable"),
    [
        (Settings(), (True, False, False)),
        (Settings(openai_api_key="k"), (True, True, False)),
        (Settings(openai_base_url="http://127.0.0.1:9/v1"), (True, True, True)),
    ],
)
def test_a_model_is_offered_where_its_key_or_address_is_set(
    settings: Settings, usable: tuple[bool, ...]
):
    assert tuple(is_usable(spec, settings) for spec in (OFFLINE, OPENAI, LOCAL)) == usable


def test_a_model_with_a_place_of_its_own_wants_its_own_key_and_packages():
    key = "ANTHROPIC_API_KEY"
    claude = ModelSpec(key="c", provider="langchain", model="anthropic:c", api_key_env=key)
    with_key = Settings(variables={key: "k"})
    assert not is_usable(claude, Settings(openai_api_key="k"))
    assert not is_usable(claude, with_key), "its package is not there"
    there = claude.model_copy(update={"model": "openai:c"})
    assert is_usable(there, with_key) and not is_usable(there, Settings(openai_api_key="k"))
