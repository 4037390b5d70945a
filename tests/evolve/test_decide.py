"""A card's new version takes the other's place when both evaluations hold, and git takes a card, a block or a line back."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kit.bench.canary import OWN, WHOLE, decide, gate_of, gates_of
from kit.bench.promotion import promote
from kit.compose.canary import versions_of
from kit.compose.deck import load_deck
from kit.metrics.judgement import Judgement, judgements, keep_judgement, note_shed
from kit.stores.opening import open_store
from studies.canary import Truth, play_canary, play_trials
from tests.cli.test_cli import run
from tests.compose.test_revision import git
from tests.evolve.shared_deck import FILES, gaining_a_gift, write_deck
from tests.sample_turn import a_turn

NEXT = FILES["desk/rewards.next.yaml"]
RULE = "rule (response_quality)"
LOOKS = range(25, 301, 25)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The deck, committed as v1."""
    folder = tmp_path_factory.mktemp("repository")
    write_deck(folder)
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("*.db*\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    git(folder, "tag", "v1")
    return folder


@pytest.fixture
def deck(repository: Path, tmp_path: Path) -> Path:
    """A copy of the deck and of its repository; the commands keep a store beside it."""
    shutil.copytree(repository, tmp_path, dirs_exist_ok=True)
    return tmp_path / "cards" / "desk"


def evolve(deck: Path, *words: str, code: int = 0) -> str:
    """What `kit evolve` prints about the deck; it ends with this code."""
    store = deck.parents[1] / "kit.db"
    done = run("evolve", *words, KIT_STORE=str(store), KIT_DECK=str(deck), PATH=os.environ["PATH"])
    assert done.returncode == code, done
    return done.stdout + done.stderr


def judge_sessions(
    deck: Path, own: Sequence[Sequence[float]], whole: Sequence[Sequence[float]], judge: str = RULE
) -> None:
    """Keeps judgements as the judges in the shadow would: of the version in place and of the new one, one a session."""
    loaded = load_deck(deck)
    sides = [versions_of(loaded, ()), versions_of(loaded, ["rewards"])]

    async def keep() -> None:
        with closing(open_store(str(deck.parents[1] / "kit.db"))) as store:
            events = store.open_documents().events
            for agent, scores in (("rewards", own), ("", whole)):
                for side, versions in enumerate(sides):
                    for number, score in enumerate(scores[side]):
                        turn = a_turn(f"{side}-{number}", f"{side}-{number}")
                        judgement = Judgement(
                            turn_id=turn.id,
                            span_id=agent or "root",
                            session=f"acme/{turn.session_id}",
                            agent=agent,
                            versions=versions,
                            judge=judge,
                            score=score,
                        )
                        await keep_judgement(events, turn, judgement)

    asyncio.run(keep())


GOOD = [1.0] * 120
POOR = [1.0, 0.0] * 60


@pytest.mark.req("SO-9")
def test_a_version_that_is_not_worse_in_either_evaluation_takes_the_place_of_the_other(deck: Path):
    judge_sessions(deck, (POOR, GOOD), (GOOD, GOOD))
    out = evolve(deck, "status")
    assert "rewards: 5.0% of the sessions have 2-" in out and out.rstrip().endswith("  promote")
    assert (
        "end to end: 1.000 in 120 sessions, 1.000 in 120 sessions with the version in place" in out
    )
    evolve(deck, "decide", "rewards")
    assert (deck / "rewards.next.yaml").exists(), "to decide changes nothing"
    assert "the file of rewards holds version 2 now" in evolve(deck, "promote", "rewards")
    assert (deck / "rewards.yaml").read_text() == NEXT
    assert not (deck / "rewards.next.yaml").exists()
    assert load_deck(deck).cards["rewards"].version == "2"
    out = evolve(deck, "status")
    assert "no card of desk has a new version" in out
    assert "UTC: version 2 of rewards was promoted by " in out
    git(deck, "commit", "-qam", "promoted")
    evolve(deck, "rollback", "rewards", "--to", "HEAD~1")
    assert (deck / "rewards.yaml").read_text() == FILES["desk/rewards.yaml"]
    assert "version HEAD~1 of rewards was put back by " in evolve(deck, "status")


@pytest.mark.req("SO-9")
@pytest.mark.parametrize("own_wins", [True, False])
def test_one_evaluation_that_wins_does_not_make_up_for_the_other(own_wins: bool, deck: Path):
    better = (POOR, GOOD)
    worse = (GOOD, POOR)
    judge_sessions(deck, *((better, worse) if own_wins else (worse, better)))
    out = evolve(deck, "promote", "rewards", code=1)
    assert ("end to end" if own_wins else "its own evaluation") in out and "higher" not in out
    assert "evolve rollback rewards" in out
    assert (deck / "rewards.yaml").read_text() == FILES["desk/rewards.yaml"]
    evolve(deck, "rollback", "rewards")
    assert not (deck / "rewards.next.yaml").exists()
    assert "version 2 of rewards was rolled back by" in evolve(deck, "status")


@pytest.mark.req("SO-9")
def test_few_sessions_decide_nothing_and_are_told_how_many_it_takes(deck: Path):
    judge_sessions(deck, (POOR[:20], POOR[:20]), (POOR[:20], POOR[:20]))
    out = evolve(deck, "decide", "rewards", code=1)
    assert out.count("cannot tell yet, about ") == 2 and "rollback" not in out
    assert evolve(deck, "status").rstrip().endswith("  go on")


@pytest.mark.req("SO-9")
def test_what_was_judged_of_another_version_or_by_another_judge_does_not_count(deck: Path):
    judge_sessions(deck, (GOOD, GOOD), (GOOD, GOOD), judge="rule (voice)")
    evolve(deck, "decide", "rewards", code=1)
    judge_sessions(deck, (GOOD, GOOD), (GOOD, GOOD))
    block = deck.parent / "blocks" / "rewards" / "rich.md"
    block.write_text(block.read_text() + "Be brief.\n")
    loaded = load_deck(deck)

    async def read() -> list[Judgement]:
        with closing(open_store(str(deck.parents[1] / "kit.db"))) as store:
            return await judgements(store.open_documents().events)

    for gate in gates_of(loaded, "rewards", asyncio.run(read())):
        assert gate.sessions == (120, 0) or gate.sessions == (0, 0)
        assert "nothing to compare yet" in str(gate)


@pytest.mark.req("SO-9")
def test_the_turns_of_a_session_hang_together():
    rng = np.random.default_rng(7)
    means = rng.beta(2, 1, size=40)
    turns = [
        (f"s{number % 40}", float(rng.random() < means[number % 40])) for number in range(4000)
    ]
    alone = [(str(number), score) for number, (_, score) in enumerate(turns)]
    by_session = gate_of(OWN, turns, turns, margin=0.05)
    by_turn = gate_of(OWN, alone, alone, margin=0.05)
    assert by_turn.holds and not by_session.holds
    assert by_session.sessions == (40, 40)


@pytest.mark.req("SO-9")
def test_at_the_margin_at_most_one_in_twenty_is_promoted_at_whichever_look_and_a_better_one_mostly():
    at_margin = play_trials(Truth((0.8, 0.9), (0.9, 0.8)), 0.1, LOOKS, 40)
    promoted = sum(trial.decision == "promote" for trial in at_margin)
    assert promoted <= 2
    better = play_trials(Truth((0.85, 0.88), (0.85, 0.88)), 0.1, LOOKS, 15)
    assert sum(trial.decision == "promote" for trial in better) >= 12


@pytest.mark.req("SO-9", "SO-10")
async def test_a_prompt_that_is_better_alone_and_worse_in_the_answer_is_not_promoted():
    verdict = await play_canary(80)
    own, whole = verdict.gates
    assert own.name == OWN and own.holds and whole.name == WHOLE and whole.is_worse
    assert not verdict.promoted and decide(verdict.gates) == "roll back"


@pytest.mark.req("SO-19")
@pytest.mark.parametrize(
    ("since", "said"), [("2020-01-01", None), ("2999-01-01", "tried for 14 days first")]
)
def test_a_gained_tool_goes_the_same_way_once_it_was_tried_for_two_weeks(
    since: str, said: str | None, tmp_path: Path
):
    gains = gaining_a_gift(f"since: {since}, flag: gifts")
    deck = load_deck(write_deck(tmp_path, rewards_next=gains), known=["gift"])
    right = [(str(n), 1.0) for n in range(150)]
    gates = [gate_of(name, right, right, 0.05) for name in (OWN, WHOLE)]
    verdict = promote(deck, "rewards", gates=gates)
    assert sum("it was not played" in fault for fault in verdict.faults) == 2
    assert any(said in fault for fault in verdict.faults) if said else len(verdict.faults) == 2


async def test_turns_that_were_not_judged_are_told(deck: Path):
    with closing(open_store(str(deck.parents[1] / "kit.db"))) as store:
        await note_shed(store.open_documents().events, a_turn(), 7)
    said = await asyncio.to_thread(evolve, deck, "status")
    assert "the judges were behind: 7 turns" in said


@pytest.mark.req("SO-9")
def test_asking_from_the_terminal_is_judged_too(deck: Path):
    (deck / "deck.yaml").write_text(FILES["desk/deck.yaml"] + "canary: {rewards: {share: 1.0}}\n")
    environ = {"KIT_STORE": str(deck.parents[1] / "kit.db"), "KIT_DECK": str(deck)}
    # The card has no tool, so that the stand-in cannot help.
    assert run("ask", "how many points do I have", **environ).returncode == 1
    out = evolve(deck, "status")
    assert "100.0% of the sessions" in out and "end to end: 1 session judged, 0 sessions" in out


# Back by git


def test_a_card_or_a_block_goes_back_to_a_revision(deck: Path):
    for part, file in {"rewards": "desk/rewards.yaml", "plain": "blocks/rewards/plain.md"}.items():
        path = deck.parent / file
        before = path.read_text()
        path.write_text(before.replace("points", "coins").replace("balance", "total"))
        git(deck, "commit", "-qam", "another")
        out = evolve(deck, "rollback", part, "--to", "v1")
        assert f"--- {path.name}" in out and f"+++ {path.name} at v1" in out
        assert path.read_text() == before
        git(deck, "commit", "-qam", "back")
        assert "is as it was at v1" in evolve(deck, "rollback", part, "--to", "v1")


def test_the_line_of_sub_agents_goes_back_alone_and_so_does_a_card_that_was_removed(
    deck: Path, monkeypatch: pytest.MonkeyPatch
):
    lead = deck / "lead.yaml"
    lead.write_text(
        lead.read_text()
        .replace("sub_agents: [rewards, shop]", "sub_agents:\n- rewards\n")
        .replace("Routes.", "Routes well.")
    )
    git(deck, "commit", "-qam", "second")
    assert "+sub_agents: [rewards, shop]" in evolve(
        deck, "rollback", "lead", "--to", "v1", "--key", "sub_agents"
    )
    assert load_deck(deck).cards["lead"].sub_agents == ("rewards", "shop")
    assert load_deck(deck).cards["lead"].description == "Routes well."
    git(deck, "commit", "-qam", "third")
    assert "says nothing under 'topics'" in evolve(
        deck, "rollback", "lead", "--to", "v1", "--key", "topics", code=2
    )
    (deck / "shop.yaml").unlink()
    git(deck, "commit", "-qam", "fourth")
    evolve(deck, "rollback", "shop", "--to", "v1")
    assert (deck / "shop.yaml").read_text() == FILES["desk/shop.yaml"], "removed, it comes back"
    assert "v1 holds no card and no block 'nobody'" in evolve(
        deck, "rollback", "nobody", "--to", "v1", code=2
    )
    assert "'shop' has no new version here" in evolve(deck, "rollback", "shop", code=2)
    monkeypatch.setenv("PATH", str(deck))
    assert "git is not there; install it" in evolve(
        deck, "rollback", "rewards", "--to", "v1", code=2
    )


def test_a_file_with_changes_is_left_alone(deck: Path):
    path = deck / "rewards.yaml"
    path.write_text(path.read_text() + "# mine\n")
    assert "rewards.yaml has changes that are not committed" in evolve(
        deck, "rollback", "rewards", "--to", "v1", code=2
    )
    assert path.read_text().endswith("# mine\n")
    judge_sessions(deck, (GOOD, GOOD), (GOOD, GOOD))
    assert "not committed" in evolve(deck, "promote", "rewards", code=2)


def test_a_part_whose_deck_does_not_stand_with_it_is_told(deck: Path):
    (deck.parent / "blocks/rewards/plain.md").unlink()
    card = deck / "rewards.yaml"
    card.write_text(card.read_text().replace("[plain]", "[rich]"))
    git(deck, "commit", "-qam", "second")
    out = evolve(deck, "rollback", "rewards", "--to", "v1", code=1)
    assert "cannot be used with it" in out and "unknown block 'plain'" in out
