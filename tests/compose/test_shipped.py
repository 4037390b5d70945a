"""The models and prompts that others published figures for: they ship, are asked as told, and stand beside ours."""

from typing import Any

import pytest

from kit.bench.grid.grid_file import read_grid
from kit.compose.models import load_models
from kit.compose.prompts import plan_prompt
from kit.models.openai import chat_model
from kit.settings import HOME
from studies.published_figures import read_evidence
from studies.shipped_models import (
    PROMPTS,
    measure_figures,
    read_reference,
)
from tests.cli.test_cli import refused, run
from tests.loopback_openai import Say, loopback

MODELS = load_models(HOME / "cards" / "models.yaml")
PAID = HOME / "data" / "grids" / "paid.yaml"
STRICT = "<strict_gating>"


@pytest.mark.realtime
@pytest.mark.req("SAT-21")
@pytest.mark.parametrize(
    ("key", "path", "name", "effort"),
    [
        ("gpt-5.4-nano", "/v1/chat/completions", "gpt-5.4-nano", "none"),
        ("gpt-5.4-nano-low", "/v1/responses", "gpt-5.4-nano", "low"),
        ("gpt-4.1-mini", "/v1/chat/completions", "gpt-4.1-mini", None),
        ("gpt-5.4-mini-low", "/v1/responses", "gpt-5.4-mini", "low"),
    ],
)
async def test_each_published_model_is_asked_over_its_api_with_its_effort(
    key: str, path: str, name: str, effort: str
):
    with loopback() as server:
        server.plays(Say(["Hello."]))
        await chat_model(MODELS[key], api_key="sk-x", base_url=server.url).ainvoke("hi")
        [sent] = server.requests
        assert server.paths == [path] and sent["model"] == name
        assert (sent.get("reasoning_effort") or sent.get("reasoning", {}).get("effort")) == effort


@pytest.mark.req("SAT-21")
def test_strict_gating_is_a_block_that_a_grid_puts_into_the_prompt_and_nothing_else():
    spec = read_grid(PAID)
    assert set(spec.grid.prompts) == set(PROMPTS)
    texts = {
        p: plan_prompt(deck.cards["orchestrator"], deck).prefix
        for (p, _), deck in spec.decks.items()
    }
    block = spec.deck.blocks["instructions-strict-gating"].text.strip()
    assert STRICT in block
    assert texts["strict-gating"].replace(f"{block}\n\n", "") == texts["plain"]


def row(
    model: str, prompt: str, case: str, *, right: bool, fate: str = "whole", parts: int = 2
) -> dict[str, Any]:
    told = {
        "kind": "measured",
        "model": model,
        "prompt": prompt,
        "case": case,
        "parts": parts,
        "failsafe": fate,
    }
    return {**told, "scores": {"exact": float(right)}, "routing_seconds": 1.5}


@pytest.mark.req("SAT-21")
def test_a_figure_is_measured_on_its_own_model_and_prompt_and_by_what_it_counts():
    figures = read_evidence().figures
    rows = [row("gpt-5.4-nano-low", "strict-gating", str(place), right=True) for place in range(9)]
    rows += [row("gpt-5.4-nano-low", "strict-gating", "x", right=True, fate="caught")]
    rows += [row("gpt-5.4-nano-low", "plain", "y", right=False, fate="unseen")]
    assert measure_figures(figures, rows) == {
        "nano-200": "9 of 10 = 0.900 [0.596, 0.982]",
        "nano-caught": "1 of 1 = 1.000 [0.207, 1.000]",
    }
    assert measure_figures(figures, read_reference()) == {}, (
        "a paid model was run: write docs/published.md again and drop this line"
    )


def test_without_a_key_one_sentence_says_what_to_set():
    result = run("bench", "--model", "gpt-4.1-mini")
    refused(result, "'gpt-4.1-mini' cannot be asked without a key: set OPENAI_API_KEY")
    assert result.stderr.count("\n") == 1
