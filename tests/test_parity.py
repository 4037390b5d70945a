"""The routing parity set: whole, read with its faults, and run on a scripted model and on the offline stand-in."""

import re
from collections import Counter
from pathlib import Path

import pytest

from kit.bench.routing import RoutingKit, Stub
from kit.compose.parts import Guards
from kit.core.errors import DataError
from kit.settings import HOME, Settings
from kit.wire import open_kit
from studies.guard_ablation import erring_model
from studies.routing_parity import Scenario, Verdict, read_scenarios, report, run_scenario
from tests.kits import answering, small_kit

FILE = HOME / "data" / "cases" / "routing_parity.jsonl"
AGENTS = ("shop", "support", "rewards", "ereceipts", "play", "offer_details", "restaurants", "retailer_context")
SCENARIOS = read_scenarios(FILE, AGENTS)
FLOOR = 0.70
"""Share of scenarios the offline stand-in must send to the right agents; below what it reaches."""


def test_the_set_covers_every_category_and_every_support_topic():
    assert len(SCENARIOS) >= 60
    count = Counter(scenario.category for scenario in SCENARIOS)
    assert set(count) == set(Scenario.model_fields["category"].annotation.__args__)  # type: ignore[union-attr]
    assert min(count.values()) >= 5
    topics = {re.sub(r"-\d$", "", scenario.id) for scenario in SCENARIOS if scenario.category == "support"}
    assert len(topics) == 12


def test_every_fault_of_a_file_is_told_with_its_line(tmp_path: Path):
    path = tmp_path / "cases.jsonl"
    good = '{"id": "a", "category": "echo", "user": "ok", "expect": [{"agent": "support"}]}'
    path.write_text(
        "\n".join([good, "", good, good.replace('"a"', '"b"').replace('"support"', '"suport"'), '{"id": "c"}', "no JSON"])
    )
    with pytest.raises(DataError) as error:
        read_scenarios(path, AGENTS)
    told = str(error.value)
    assert f"{path}:3: id 'a' is given twice" in told
    assert f"{path}:4: unknown agent 'suport': did you mean 'support'" in told
    assert f"{path}:5: category" in told and f"{path}:5: user" in told
    assert f"{path}:6: line: Invalid JSON" in told
    assert f"{path}:1" not in told
    with pytest.raises(DataError, match="cannot read"):
        read_scenarios(tmp_path / "none.jsonl", AGENTS)


@pytest.mark.req("SAT-13", "SAT-5", "SAT-14")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
async def test_a_model_that_errs_still_ends_in_the_expected_calls(scenario: Scenario):
    kit = small_kit(
        erring_model(scenario),
        {agent: answering(f"From {agent}.") for agent in AGENTS},
        default_sub_agent="shop",
        support_agent="support",
        guards=Guards(),
    )
    verdict, reply = await run_scenario(scenario, kit)
    assert verdict.calls == scenario.calls
    assert reply.status == "ok"


@pytest.mark.req("SAT-13")
async def test_the_offline_stand_in_on_the_parity_set_with_its_misses_listed(capsys: pytest.CaptureFixture[str]):
    async with open_kit(Settings(store=":memory:", pace=0.0, today="2026-11-01")) as kit:
        stubs = {agent: Stub(kit.team.agents[agent].card) for agent in AGENTS}
        host = RoutingKit(kit.team.with_agents(stubs))
        verdicts = [(await run_scenario(scenario, host))[0] for scenario in SCENARIOS]
    with capsys.disabled():
        print(
            "\n"
            + report(verdicts, "offline stand-in on data/cases/routing_parity.jsonl (of a picture it reads what the file says)")
        )
    assert sum(verdict.agents_right for verdict in verdicts) / len(verdicts) >= FLOOR


def test_a_report_lists_every_miss():
    first, second = SCENARIOS[:2]
    told = report([Verdict(scenario=first, calls=first.calls), Verdict(scenario=second, calls=(("shop", "x"),))], "title")
    assert "1 of   2 agents" in told
    assert first.id not in told
    assert f"{second.id}: " in told and "called [('shop', 'x')]" in told
