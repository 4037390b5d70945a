"""The routing parity set: whole, read with its faults, and run on a scripted model and on the offline stand-in."""

from pathlib import Path

import pytest

from case_pictures import SHOWS, draw_picture
from kit.bench.case import read_cases
from kit.bench.identity import digest
from kit.bench.routing import RoutingKit, Stub
from kit.compose.parts import Guards
from kit.core.errors import DataError
from kit.settings import HOME
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit
from studies.guard_ablation import erring_model
from studies.routing_parity import Scenario, read_scenarios, report, run_scenario
from tests.kits import CONSUMER_AGENTS, EMBEDDED, answering, small_kit

FILE = HOME / "data" / "cases" / "routing_parity.jsonl"
SCENARIOS = read_scenarios(FILE, CONSUMER_AGENTS)
FLOOR = 0.70
"""Share of scenarios the offline stand-in must send to the right agents; below what it reaches."""


def test_a_picture_of_a_case_lies_beside_its_file_and_is_known_by_what_it_holds(tmp_path: Path):
    (ask,) = next(
        scenario for scenario in SCENARIOS if scenario.id == "image-receipt-greeting"
    ).case.turns
    assert (
        ask.pictures == (draw_picture("receipt"),)
        and ask.message == "[picture: receipt.png] hi there"
    )
    for kind in SHOWS:
        assert (FILE.parent / "pictures" / f"{kind}.png").read_bytes() == draw_picture(kind).data
    path = tmp_path / "cases.jsonl"
    path.write_text(
        '{"id": "a", "user": "look", "expected_sub_agents": [], "pictures": ["till.png"]}'
    )
    keys: list[str] = []
    for kind in SHOWS:
        (tmp_path / "till.png").write_bytes(draw_picture(kind).data)
        keys += [digest(case) for case in read_cases(path)]
    assert keys[0] != keys[1]
    for data, fault in ((b"no picture", "no picture that can be read"), (None, "No such file")):
        (tmp_path / "till.png").unlink(missing_ok=True)
        if data is not None:
            (tmp_path / "till.png").write_bytes(data)
        with pytest.raises(DataError, match=rf"cases\.jsonl:1: case 'a', pictures: .*{fault}"):
            list(read_cases(path))


@pytest.mark.req("SAT-13", "SAT-5", "SAT-14")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
async def test_a_model_that_errs_still_ends_in_the_expected_calls(scenario: Scenario):
    kit = small_kit(
        erring_model(scenario),
        {agent: answering(f"From {agent}.") for agent in CONSUMER_AGENTS},
        default_sub_agent="shop",
        support_agent="support",
        guards=Guards(),
    )
    verdict, reply = await run_scenario(scenario, kit)
    assert verdict.calls == scenario.calls
    assert reply.status == "ok"


@pytest.mark.req("SAT-13")
async def test_the_offline_stand_in_on_the_parity_set_with_its_misses_listed(
    capsys: pytest.CaptureFixture[str],
):
    async with open_kit(EMBEDDED) as kit:
        stubs = {agent: Stub(kit.team.agents[agent].card) for agent in CONSUMER_AGENTS}
        host = RoutingKit(kit.team.with_agents(stubs), SqliteStore(":memory:"))
        verdicts = [(await run_scenario(scenario, host))[0] for scenario in SCENARIOS]
    with capsys.disabled():
        print(
            "\n"
            + report(
                verdicts,
                "offline stand-in on data/cases/routing_parity.jsonl (of a picture it reads what the file says)",
            )
        )
    assert sum(verdict.agents_right for verdict in verdicts) / len(verdicts) >= FLOOR
