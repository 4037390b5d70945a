"""models.yaml: specs by key, faults with their line; and the model a spec becomes."""

from pathlib import Path

import pytest

from kit.compose.models import load_models
from kit.core.errors import DeckError


def models(folder: Path, text: str) -> Path:
    path = folder / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_fault_of_the_file_is_reported_with_its_line(tmp_path: Path):
    text = "small:\n  provider: openapi\nbig:\n  provider: openai\n  contxt_window: 5\n  fallback: smal\nodd: 3\n"
    with pytest.raises(DeckError) as caught:
        load_models(models(tmp_path, text))
    assert [fault.replace(f"{tmp_path}/", "") for fault in caught.value.faults] == [
        "models.yaml:2: 'provider': input should be 'offline', 'openai', 'langchain', 'python' "
        "or 'simulated', got 'openapi'",
        "models.yaml:5: unknown field 'contxt_window': did you mean 'context_window'?",
        "models.yaml:7: expected a mapping of fields, found a single value; write `field: value` lines",
    ]


def test_a_missing_file_is_a_sentence(tmp_path: Path):
    with pytest.raises(
        DeckError, match=r"models\.yaml:1: cannot be read \(No such file or directory\)"
    ):
        load_models(tmp_path / "models.yaml")
