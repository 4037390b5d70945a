"""The comparison with other frameworks: what it computes from its rows, and that our own two
adapters play the workload."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import experiment
from experiment import Figures, WrongAnswer, cells, check
from report import CELLS, HAND, KIT, STREAM, Row, bars, page, summarise
from workload import History, Spec, is_whole


def row(adapter: str, figures: Figures) -> Row:
    return {
        "adapter": adapter,
        "experiment": "cpu",
        "round": 0,
        "date": "2026-11-01T10:00:00+00:00",
        "load": 1.0,
        "label": adapter.upper(),
        "versions": {adapter: "1.0"},
        "figures": figures,
    }


# ── the adapters of our own; the peers' packages are not in this environment ──────────────────────


@pytest.mark.realtime
@pytest.mark.parametrize("adapter", ["kit", "hand_loop"])
@pytest.mark.parametrize(
    "spec",
    [Spec(8, sub_tool=True), Spec(2, True, chunks=20)],
)
async def test_all_results_are_joined_and_none_mixed_up(adapter: str, spec: Spec, tmp_path: Path):
    module = import_module(f"adapters.{adapter}")
    await check(module.Adapter(replace(spec, store=str(tmp_path / "kit.db"))), spec)


@pytest.mark.parametrize("answer", ["R:a:check 0", "R:a:check 0 | R:b:check 1"])
async def test_an_adapter_that_loses_or_mixes_up_a_result_is_found_out(answer: str):
    class Adapter:
        async def turn(self, text: str, history: History = ()) -> str:
            return answer

    assert is_whole(Spec(), "check 0", "R:b:check 0 | R:a:check 0")
    with pytest.raises(WrongAnswer):
        await check(Adapter(), Spec())


@pytest.mark.realtime
async def test_every_bar_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The tables and bars read keys that the experiments write: one misspelt would show as failed."""
    for name, value in {"CPU_SECONDS": 0.0, "WARM": 1, "CROWD": 3, "MESSAGES": 6}.items():
        monkeypatch.setattr(experiment, name, value)
    assert [*CELLS, STREAM] == list(cells(tmp_path))
    figures: Figures = {}
    for name, play in experiment.EXPERIMENTS.items():
        (tmp_path / name).mkdir()
        figures |= await play(import_module("adapters.kit"), tmp_path / name)
    summary = summarise([row(adapter, figures) for adapter in (KIT, HAND, "quick")])
    assert "failed" not in page(summary)
    assert len(bars(summary)) == 8
    assert all(bar.figure is not None for bar in bars(summary))
