"""Switch cases cover every pair, the report names what a description loses, and only a proven card goes live."""

import json
import re
import shutil
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from kit.bench.case import read_cases
from kit.bench.deck_routing import route_dialogues
from kit.bench.promotion import promote
from kit.bench.routing import catalog_of, read_catalog, route_file
from kit.bench.routing_report import NOBODY, RoutedTurn, read_routed_turns, report
from kit.cli import main
from kit.compose.deck import Deck, load_deck
from kit.core.card import AgentCard, EvalPolicy
from kit.core.errors import DataError, UnknownId
from kit.settings import HOME
from make_cases import DATA
from tests.kits import small_deck

FILE = DATA / "cases" / "switches.jsonl"
TRIO = ("shop", "rewards", "play")


def switches() -> list[RoutedTurn]:
    """Every ordered pair, ten times."""
    turns: list[RoutedTurn] = []
    for before, after in permutations(TRIO, 2):
        for _ in range(10):
            turns.append(
                RoutedTurn(
                    query=f"q{len(turns)}",
                    expected=(after,),
                    called=(after,),
                    previous=(before,),
                )
            )
    return turns


def draft_deck() -> Deck:
    return small_deck(
        TRIO, [AgentCard(id="play", description="Games.", model="offline", status="draft")]
    )


async def test_a_deck_routes_its_dialogues_as_a_file_is_routed(tmp_path: Path):
    few, catalog, out = tmp_path / "few.jsonl", tmp_path / "catalog.json", tmp_path / "out.jsonl"
    few.write_text("".join(FILE.read_text().splitlines(keepends=True)[:6]))
    deck = load_deck(HOME / "cards" / "consumer")
    subs = [{"id": card.id, "description": card.description} for card in catalog_of(deck).cards]
    catalog.write_text(json.dumps({"sub_agents": subs}))
    await route_file(few, read_catalog(catalog), out)
    turns = await route_dialogues(list(read_cases(few)), catalog_of(deck))
    assert len(turns) > 6 and turns == read_routed_turns(few, out)
    out.write_text(out.read_text().partition("\n")[0] + "\n")
    with pytest.raises(DataError, match="has no prediction; route the same file again"):
        read_routed_turns(few, out)
    out.write_text("{}\n")
    with pytest.raises(DataError, match=r"out\.jsonl:1: needs id, turn, called"):
        read_routed_turns(few, out)


@pytest.mark.req("PC2-S5.9")
def test_the_report_says_which_description_loses_which_questions_to_which_card():
    def turn(query: str, expected: tuple[str, ...], called: tuple[str, ...]) -> RoutedTurn:
        return RoutedTurn(query=query, expected=expected, called=called)

    found = report(
        [
            turn("yogurt ends when?", ("offers",), ("shop",)),
            turn("limit on pizza?", ("offers",), ("shop",)),
            turn("points?", ("rewards",), ()),
            turn("hi", (), ("shop",)),
            turn("coffee", ("shop",), ("shop",)),
        ]
    )
    assert [(loss.card, loss.to, loss.queries) for loss in found.confusions] == [
        ("offers", "shop", ("yogurt ends when?", "limit on pizza?")),
        (NOBODY, "shop", ("hi",)),
        ("rewards", NOBODY, ("points?",)),
    ]
    accuracy = {card: share.value for card, share in found.accuracy.items()}
    assert accuracy == {"offers": 0.0, "rewards": 0.0, "shop": 1.0}
    assert "offers loses 2 to shop: 'yogurt ends when?'; 'limit on pizza?'" in found.lines()


@pytest.mark.req("PC2-PF1", "PC2-S9.3-5", "PC2-NFR-3")
def test_a_draft_is_promoted_at_its_threshold_and_not_below():
    deck = draft_deck()
    results = switches()
    counted = [turn for turn in results if "play" in (*turn.expected, *turn.previous)]
    assert len(counted) == 40
    good = promote(deck, "play", results)
    assert good.promoted and good.card.status == "active"
    assert good.switches.value == 1.0 and good.switches.low < 0.95

    def with_wrong(count: int) -> list[RoutedTurn]:
        wrong = counted[:count]
        return [t.replace(called=t.previous) if t in wrong else t for t in results]

    assert promote(deck, "play", with_wrong(2)).promoted  # 38 of 40 is 95 %: the rate decides
    bad = promote(deck, "play", with_wrong(3))
    assert not bad.promoted and bad.card.status == "draft" and "37 of 40" in bad.faults[0]
    lenient = deck.cards["play"].replace(
        eval=EvalPolicy(judge="rule", rubric="policy", threshold=0.9)
    )
    milder = replace(deck, cards={**deck.cards, "play": lenient})
    assert promote(milder, "play", with_wrong(3)).promoted


@pytest.mark.req("PC2-PF1")
@pytest.mark.parametrize(("before", "after"), [("play", "shop"), ("rewards", "play")])
def test_a_pair_that_was_not_measured_stops_a_promotion(before: str, after: str):
    results = [
        turn for turn in switches() if (turn.previous, turn.expected) != ((before,), (after,))
    ]
    assert promote(draft_deck(), "play", results).faults == (
        f"no switch was measured from {before} to {after}",
    )
    assert not promote(draft_deck(), "play", []).promoted


@pytest.mark.req("PC2-PF1", "PC1-S9.4-3")
def test_a_card_that_does_not_fit_its_deck_is_not_promoted():
    deck = draft_deck()
    broken = {
        **deck.cards,
        "play": deck.cards["play"].model_copy(update={"prompt_blocks": ("nowhere",)}),
    }
    verdict = promote(replace(deck, cards=broken), "play", switches())
    assert not verdict.promoted and "nowhere" in verdict.faults[0]
    with pytest.raises(UnknownId, match="did you mean 'play'"):
        promote(deck, "plya", switches())


def drafted(tmp_path: Path) -> Path:
    """A copy of the shipped cards in which rewards is a draft."""
    shutil.copytree(HOME / "cards", tmp_path / "cards")
    card = tmp_path / "cards" / "consumer" / "rewards.yaml"
    card.write_text(f"{card.read_text()}status: draft\n")
    return card


@pytest.mark.req("PC2-PF1", "PC2-S9.3-5", "SO-1")
def test_a_trial_plays_the_draft_judges_its_answers_and_writes_when_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    card = drafted(tmp_path)
    lines = FILE.read_text().splitlines(keepends=True)
    once = tmp_path / "once.jsonl"
    once.write_text("".join(line for line in lines if '-there"' in line))
    trial = ["cards", "promote", "rewards", str(once), "--deck", str(card.parent)]
    assert main(trial) == 0 and "status: draft" in card.read_text()
    assert re.search(r"answers: \d+ of 14 = 1.000", capsys.readouterr().out)
    assert main([*trial, "--write"]) == 0
    assert re.search(r"switches: \d+ of ", capsys.readouterr().out)
    assert load_deck(card.parent).cards["rewards"].status == "active"


@pytest.mark.req("PC2-PF1")
def test_answers_that_the_judge_turns_down_stop_a_promotion():
    verdict = promote(draft_deck(), "play", switches(), passed=[True] * 9 + [False])
    assert not verdict.promoted and verdict.faults == (
        "9 of 10 answers pass, 90.0%; 95% are needed",
    )
    assert promote(draft_deck(), "play", switches(), passed=[True] * 10).promoted
