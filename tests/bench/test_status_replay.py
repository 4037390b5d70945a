"""A policy is replayed over a recorded turn: what it would have said equals what a turn under it does say."""

import pytest

from kit.bench.status_replay import POLICIES, compare, replay, replay_lines
from kit.compose.parts import StatusPolicy
from tests.runtime.test_status import OFFERS, POINTS, SUPPORT, WORDS, ask, lines, team_of

WORK = {
    "shop": ((0.2, OFFERS), (0.1, POINTS), (0.95, OFFERS), (1.0, "")),
    "rewards": ((0.25, POINTS), (0.6, SUPPORT), (2.0, "")),
    "slow": ((4.0, ""),),
}


@pytest.mark.req("PC2-S5.7b")
@pytest.mark.parametrize("name", POLICIES)
async def test_a_replay_says_what_a_live_turn_under_the_policy_says(name: str):
    policy = POLICIES[name]
    recorded = (await ask(team_of(WORK))).events
    live = await ask(team_of(WORK, **policy.model_dump()))
    told = [
        (round(s.at, 6), s.agents[0] if len(s.agents) == 1 else "", s.text)
        for s in replay_lines(recorded, policy, WORDS)
    ]
    assert told == lines(live.events)
    assert told or policy.default == "suppress"


async def test_policies_are_compared_by_first_useful_text_lines_a_second_and_silence():
    recorded = (await ask(team_of(WORK))).events
    rows = {row.policy: row for row in compare(recorded, WORDS)}
    assert rows["forward"].first_useful == pytest.approx(0.2) and rows[
        "window of 400 ms"
    ].first_useful == pytest.approx(0.6)
    assert rows["suppress"].first_useful == pytest.approx(4.0) and rows["suppress"].lines == 0
    assert rows["forward"].lines == 6 and rows["forward"].lines_a_second == pytest.approx(6 / 4)
    assert rows["forward"].lines_a_second > rows["window of 400 ms"].lines_a_second
    assert rows["forward"].silence == pytest.approx({"shop": 1.0, "rewards": 2.0, "slow": 2.5})
    assert rows["suppress"].silence == pytest.approx({"shop": 2.25, "rewards": 2.85, "slow": 4.0})


def test_nothing_recorded_is_nothing_told():
    assert replay([], StatusPolicy(), WORDS).first_useful is None
