"""Whatever fails and however the composer lies: owned up to, nothing raw, nothing claimed, nobody's answer lost.

64 scenes here; `python -m tests.chaos` plays 5,000 and prints the table.
"""

import pytest

from kit.core.context import Principal
from kit.models.offline import OfflineModel
from tests.chaos.scene import COMPOSERS, miscounted, scene
from tests.chaos.stage import sweep

SCENES = 64
ROWS = (
    *("PC2-FR-8", "PC2-FR-12", "PC2-FR-14", "PC2-AC-8"),
    *("PC1-FR-5", "PC1-S9.2-4", "PC2-S9.2-3", "PC2-S9.5-5"),
)


@pytest.mark.req(*ROWS)
def test_no_lying_composer_gets_a_failure_past_the_user():
    tally = sweep(range(SCENES))
    print("\n" + tally.table())
    assert tally.scenes == SCENES
    assert not any(tally.wrong.values()), tally.table() + "\n" + "\n".join(tally.examples)
    assert tally.planted > 20 and tally.inputs > 4 * SCENES, (
        "data of other people was there to find"
    )
    assert len(tally.by_composer) > len(COMPOSERS) / 2
    assert tally.paths["none owed"] >= tally.clean
    assert set(tally.by_composer["retells"]) <= {"none owed", "composed", "appended"}, (
        "told in other words, and nothing was wrong with it"
    )


@pytest.mark.parametrize("seed", (1859, 2243))
def test_a_request_that_is_repeated_for_ever_stands_for_one_part_alone(seed: int):
    """The model counts all parts, calls for some of them, and makes the same calls in every later round."""
    assert scene(seed).composer == "calls_forever" and scene(seed).owed
    tally = sweep(range(seed, seed + 1))
    assert not any(tally.wrong.values()), "\n".join(tally.examples)


@pytest.mark.req("PC2-S5.4c", "PC2-FR-7")
def test_no_model_that_miscounts_gets_a_lost_part_shown_as_answered():
    """`python -m tests.chaos` plays 1,000."""
    tally = sweep(range(40), scenes=miscounted)
    assert tally.scenes == tally.short == 40
    assert not any(tally.wrong.values()), tally.table() + "\n" + "\n".join(tally.examples)


@pytest.mark.req("PC2-FR-14", "PC2-AC-8")
def test_the_offline_stand_in_hardly_ever_needs_the_fixed_sentence():
    tally = sweep(range(24), OfflineModel().paced(0))
    print("\n" + tally.table())
    assert not any(tally.wrong.values()), "\n".join(tally.examples)
    owed = tally.scenes - tally.paths["none owed"]
    assert owed > 10 and tally.paths["appended"] + tally.paths["rescued"] < 0.05 * owed


def test_the_judge_sees_what_an_unchecked_composer_would_get_away_with(
    monkeypatch: pytest.MonkeyPatch,
):
    async def unchecked(text: str, *_: object, **__: object) -> str:
        return text

    monkeypatch.setattr("kit.patterns.agents_as_tools.acknowledge", unchecked)
    tally = sweep(range(24))
    about_the_text = [
        what
        for what in tally.wrong
        if "foreign" not in what
        and what != "acknowledgements on clean turns"
        and what != "turns that lost a part and are shown as answered"
    ]
    assert len(about_the_text) == 6 and all(tally.wrong[what] for what in about_the_text), (
        tally.table()
    )


PLACES = ("model inputs", "answers", "events", "traces", "downloads", "logs", "the store")


def test_the_judge_sees_foreign_data_once_principals_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(Principal, "__eq__", lambda *_: True)
    tally = sweep(range(20))
    assert all(
        tally.wrong[f"foreign payloads in {place}"]
        for place in PLACES
        if place not in ("answers", "logs")
    ), tally.table()
