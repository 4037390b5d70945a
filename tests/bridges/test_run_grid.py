"""Cards with `run` in a grid: played, counted, and played anew when their code is another."""

from pathlib import Path

import pytest

from kit import ExperimentKits, Settings, compare
from kit.bench.grid.results import read_results
from kit.core.model import ModelSpec
from kit.core.simulation import Law, LogNormal
from tests.bridges.decks import write_deck
from tests.bridges.test_run_cards import AGENTS

pytestmark = pytest.mark.realtime
CASES = [{"user": "Is there a flight at noon?", "expected_sub_agents": ["flights"]}]
EXACT = ModelSpec(
    key="simulated-exact", provider="simulated", law=Law(latency=LogNormal(median=0.01))
)


def test_a_grid_asks_what_cards_run_and_asks_again_once_its_code_has_changed(tmp_path: Path):
    """What an agent did not say of its spend is not known of the turn."""
    deck = write_deck(tmp_path, {"flights": "./agents.py:flights"}, AGENTS)
    settings = Settings(store=str(tmp_path / "kit.db"), deck=deck)

    def play() -> int:
        result = compare(
            [EXACT], CASES, name="runs", kits=ExperimentKits.of(settings, virtual=False)
        )
        assert list(result.frame.exact) == [1.0] and result.run.complete
        row = read_results(result.run.folder)[-1]
        assert (row["cost"], row["input_tokens"], row["output_tokens"]) == (None, None, None)
        assert row["model_calls"] > 0, "what was told is kept"
        return result.run.done

    assert play() == 1 and play() == 0
    (deck / "agents.py").write_text(AGENTS.replace("at noon", "at dusk"))
    assert play() == 1, "another code is another cell"
