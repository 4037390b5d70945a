"""A card, a block and a line of sub_agents each go back alone by git, and a deck loads as it was at any revision."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kit.compose.deck import Deck, load_deck
from kit.compose.revision import RevisionError, committed_on, load_deck_at
from kit.core.errors import DeckError
from tests.kits import write_files


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


FILES = {
    "consumer/deck.yaml": "orchestrator: orchestrator\nrequired_blocks: []\n",
    "consumer/orchestrator.yaml": "id: orchestrator\ndescription: Routes.\nmodel: offline\n"
    "sub_agents:\n  - shop\n  - play\n",
    "consumer/shop.yaml": "id: shop\ndescription: Sells.\nmodel: offline\n"
    "tools: [search_offers]\nprompt_blocks: [persona-shop]\n",
    "consumer/play.yaml": "id: play\ndescription: Knows games.\nmodel: offline\n",
    "blocks/shop/persona-shop.md": "---\nid: persona-shop\ncategory: persona\nowner: shop\n---\n"
    "You sell.\n",
    "models.yaml": "{}\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A deck, committed as v1; then a card, a block and a sub_agents line each change in a commit
    of their own."""
    root = tmp_path / "repo"
    write_files(root / "product" / "cards", FILES)
    git(tmp_path, "init", "-q", str(root))
    cards = root / "product" / "cards"
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "tag", "v1")
    edit(cards / "consumer" / "shop.yaml", "id: shop\n", 'id: shop\nversion: "2"\n')
    git(root, "commit", "-qam", "card")
    block = cards / "blocks" / "shop" / "persona-shop.md"
    block.write_text(block.read_text() + "\nAlways name the store.\n")
    git(root, "commit", "-qam", "block")
    edit(cards / "consumer" / "orchestrator.yaml", "  - play\n", "")
    git(root, "commit", "-qam", "sub_agents")
    return root


def state(deck: Deck) -> tuple[str, bool, bool]:
    """The shop card's version, whether its block has the new line, whether play is asked."""
    return (
        deck.cards["shop"].version,
        "Always name the store." in deck.blocks["persona-shop"].text,
        "play" in deck.cards["orchestrator"].sub_agents,
    )


@pytest.mark.req("PC1-S10.3")
def test_a_deck_loads_as_it_was_at_each_revision_and_nothing_else_moves(repository: Path):
    path = repository / "product" / "cards" / "consumer"
    before = git(repository, "status", "--porcelain")
    assert state(load_deck(path)) == ("2", True, False)
    assert state(load_deck_at("v1", path)) == ("1", False, True)
    assert state(load_deck_at("HEAD~2", path)) == ("2", False, True)
    assert state(load_deck_at("HEAD~1", path)) == ("2", True, True)
    assert state(load_deck_at("HEAD", path)) == state(load_deck(path))
    assert git(repository, "status", "--porcelain") == before


def test_a_deck_that_was_removed_can_still_be_loaded(repository: Path):
    path = repository / "product" / "cards" / "consumer"
    shutil.rmtree(repository / "product")
    assert state(load_deck_at("v1", path)) == ("1", False, True)


def test_an_unknown_revision_or_a_folder_without_git_is_a_sentence(
    repository: Path, tmp_path: Path
):
    path = repository / "product" / "cards" / "consumer"
    with pytest.raises(DeckError, match="give a revision that holds this folder"):
        load_deck_at("v9", path)

    write_files(tmp_path / "loose" / "cards", FILES)
    with pytest.raises(DeckError, match="not a git repository"):
        load_deck_at("HEAD", tmp_path / "loose" / "cards" / "consumer")


@pytest.mark.parametrize("revision", ["--output=written", "v1\0", "v\ud800"])
def test_what_is_no_revision_is_a_sentence_and_no_option_of_git(repository: Path, revision: str):
    path = repository / "product" / "cards" / "consumer"
    with pytest.raises(RevisionError, match=r"a revision (does not begin|holds neither)"):
        committed_on(path, revision)
    with pytest.raises(DeckError, match=r"a revision (does not begin|holds neither)"):
        load_deck_at(revision, path)
    assert not list(repository.rglob("written"))
    assert committed_on(path, "v1").year >= 2020


def test_faults_of_an_old_deck_name_the_revision_and_no_scratch_folder(repository: Path):
    path = repository / "product" / "cards" / "consumer"
    edit(path / "shop.yaml", "search_offers", "serch_offers")
    git(repository, "commit", "-qam", "broken")
    git(repository, "tag", "bad")
    with pytest.raises(DeckError) as caught:
        load_deck_at("bad", path, known={"search_offers", "search_products"})
    assert any(
        fault.startswith("bad:product/cards/consumer/shop.yaml:") for fault in caught.value.faults
    )
    assert not any("/tmp" in fault for fault in caught.value.faults)
