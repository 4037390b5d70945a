"""Guards switched on and off: each saves what it is for, and what it costs is shown as well."""

import pytest

from kit.core.language.words import content_words
from kit.settings import HOME
from studies.guard_ablation import Trial, play_trials, settings
from studies.guard_errors import INVENTED, OTHERWISE, WORDINGS, play_errors, several_parts
from studies.routing_parity import read_scenarios

CASES = HOME / "data" / "cases"
AGENTS = (
    "shop",
    "support",
    "rewards",
    "ereceipts",
    "play",
    "offer_details",
    "restaurants",
    "retailer_context",
)
PARITY = {
    scenario.id: scenario for scenario in read_scenarios(CASES / "routing_parity.jsonl", AGENTS)
}
COSTS = read_scenarios(CASES / "guard_costs.jsonl", AGENTS)
SAVES = {
    "failsafe": "mixed-receipt-coffee-dropped",
    "duplicate": "mixed-twice-the-same",
    "echo": "echo-gift-card",
    "overlap": "mixed-invented-call",
    "verbatim": "no-reformulation-spelling",
    "fastpath": "out-of-range-1",
}
"""Guard -> a scenario that only it saves."""


def right(rows: list[Trial]) -> dict[str, bool]:
    return {row.setting: row.words for row in rows}


@pytest.mark.parametrize(("guard", "scenario"), SAVES.items())
async def test_each_guard_saves_a_scenario_and_says_why(guard: str, scenario: str):
    chosen = {
        name: value for name, value in settings().items() if name in ("all on", f"without {guard}")
    }
    rows = await play_trials([PARITY[scenario]], chosen, AGENTS)
    assert right(rows) == {"all on": True, f"without {guard}": False}
    acted = {row.setting: {name for name, _, _ in row.acted} for row in rows}
    assert guard in acted["all on"] and guard not in acted[f"without {guard}"]
    assert all(reason for row in rows for _, _, reason in row.acted)


@pytest.mark.parametrize("guard", ["failsafe", "echo", "overlap", "fastpath"])
async def test_a_guard_can_cost_a_decision_that_was_right(guard: str):
    mine = [scenario for scenario in COSTS if scenario.id.startswith(guard)]
    chosen = {
        name: value for name, value in settings().items() if name in ("all on", f"without {guard}")
    }
    rows = await play_trials(mine, chosen, AGENTS)
    assert all(row.agents for row in rows if row.setting == f"without {guard}")
    assert not all(row.agents for row in rows if row.setting == "all on")


@pytest.mark.req("SAT-4", "PC2-S5.1")
async def test_with_guards_an_invented_call_hardly_ever_runs_and_a_needed_one_is_hardly_ever_dropped():
    asks = several_parts(CASES / "mixed.jsonl", len(AGENTS))[::12]
    assert not any(
        content_words(f"{INVENTED} {OTHERWISE}") & content_words(ask.user) for ask in asks
    )
    rows = await play_errors(asks, AGENTS)

    def errors(setting: str, *wordings: str, needed: bool) -> float:
        chosen = [
            row
            for row in rows
            if row.setting == setting and row.needed == needed and row.wording in wordings
        ]
        return sum(row.ran != needed for row in chosen) / len(chosen)

    assert (
        errors("guards on", *WORDINGS[:2], needed=False) < 0.1
        and errors("guards on", *WORDINGS, needed=True) < 0.02
    )
    assert (
        errors("pure loop", *WORDINGS, needed=False) == 1
        and errors("pure loop", *WORDINGS, needed=True) == 0
    )
    assert errors("without overlap", *WORDINGS, needed=False) == 1
