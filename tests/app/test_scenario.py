"""The scenario: what the address may ask for, and what it may not."""

import pytest

from kit.core.model import OFFLINE, ModelSpec
from kit.settings import Settings
from kit.ui.shared.model_choice import missing_variable

OPENAI, LOCAL = ModelSpec(key="gpt-x", provider="openai"), ModelSpec(key="local", provider="openai")


@pytest.mark.parametrize(
    ("settings", "offline", "openai", "local"),
    [
        (Settings(), "", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        (Settings(openai_api_key="k"), "", "", "OPENAI_BASE_URL"),
        (Settings(openai_base_url="http://127.0.0.1:9/v1"), "", "", ""),
    ],
)
def test_a_model_that_cannot_be_used_says_what_is_wanting(
    settings: Settings, offline: str, openai: str, local: str
):
    assert [missing_variable(spec, settings) for spec in (OFFLINE, OPENAI, LOCAL)] == [
        offline,
        openai,
        local,
    ]


def test_a_model_with_a_place_of_its_own_wants_its_own_key_and_packages():
    claude = ModelSpec(
        key="c", provider="langchain", model="anthropic:c", api_key_env="ANTHROPIC_API_KEY"
    )
    assert missing_variable(claude, Settings(openai_api_key="k")) == "ANTHROPIC_API_KEY"
    with_key = Settings(variables={"ANTHROPIC_API_KEY": "k"})
    assert missing_variable(claude, with_key) == "pip install langchain langchain-anthropic"
    assert missing_variable(claude.model_copy(update={"model": "openai:c"}), with_key) == ""
