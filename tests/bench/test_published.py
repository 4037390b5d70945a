"""The table of published figures is what its command makes, says what they settle, and claims
nothing for models nobody ran."""

import pytest

from kit.bench.case import read_cases
from kit.compose.models import load_models
from kit.home import HOME
from kit.runtime.clock import run_virtual
from studies.contract_figures import measure_trades, trade_table
from studies.published_figures import (
    evidence_rows,
    evidence_table,
    latency_table,
    read_evidence,
    route_stand_in,
    stand_in_table,
)
from studies.shipped_models import measure_figures, model_table, read_reference

DOCUMENT = HOME / "docs" / "published.md"


@pytest.mark.req("PC1-NFR-1")
def test_the_document_is_what_the_command_writes():
    evidence, text = read_evidence(), DOCUMENT.read_text()
    rows = read_reference()
    assert (
        evidence_table(
            evidence_rows(evidence, measure_figures(evidence.figures, rows)), evidence.sources
        )
        in text
    ), "run `python notebooks/make_published.py`"
    assert model_table(load_models(HOME / "cards" / "models.yaml"), rows) in text, (
        "run `python notebooks/make_published.py`"
    )
    for said in (
        "30 of 30 = 1.000 [0.886, 1.000]",
        "181 of 200 = 0.905 [0.856, 0.938]",
        "1,450 ms",
        "3,230 ms",
        "about 1 time in 15",
    ):
        assert said in text


@pytest.mark.pages
@pytest.mark.req("SO-25")
def test_the_contracts_figures_stand_beside_ours_and_its_models_can_be_named():
    evidence, text = read_evidence(), DOCUMENT.read_text()
    assert trade_table(evidence.trades, run_virtual(measure_trades())) in text, (
        "run `python notebooks/make_published.py`"
    )
    for words in (
        "2 to 3 times the tokens",
        "30 to 50 % off the long tail",
        "times out 5 % of the time",
        "distilled to about 1,500",
    ):
        assert any(words in trade.says for trade in evidence.trades)
    models = load_models(HOME / "cards" / "models.yaml")
    assert {"claude-sonnet-4-6", "claude-haiku-4-5", "claude-opus-4-7"} <= set(models)


@pytest.mark.req("PC1-S11.2")
def test_published_latencies_stand_each_with_the_sample_that_would_settle_it():
    baselines = read_evidence().latencies
    assert latency_table(baselines) in DOCUMENT.read_text(), (
        "run `python notebooks/make_published.py`"
    )
    assert [baseline.ms for baseline in baselines] == [300, 2700, 5600, 1718, 12051, 14983]
    assert all("149 turns for 10 % either way" in baseline.sample for baseline in baselines)
    routing = baselines[0]
    assert (
        routing.target_ms == 500
        and "11 to show that it stays below 500 ms" in routing.sample
        and "4,951" in routing.of
    )


@pytest.mark.pages
def test_what_is_said_of_the_stand_in_still_holds():
    found = run_virtual(route_stand_in())
    cases = list(read_cases(HOME / "data" / "cases" / "mixed.jsonl"))
    assert list(found) == [2, 3, 4, 5] and sum(share.n for share in found.values()) == len(cases)
    assert stand_in_table(found) in DOCUMENT.read_text(), "run `python notebooks/make_published.py`"
