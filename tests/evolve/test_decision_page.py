"""On the page Cards an operator who is signed in decides on a card's new version; nobody else can."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from kit.cli import main
from tests.app.rooms import app_over, room, shown
from tests.evolve.shared_deck import FILES
from tests.evolve.test_decide import (
    GOOD,
    NEXT,
    POOR,
    deck,
    git,
    judge_sessions,
    repository,
)
from tests.security.test_visitors import HEADER, SECRET, token

__all__ = ["deck", "repository"]
SIGNED_IN = {
    "VISITOR": f"header:{HEADER}",
    "VISITOR_KEY": SECRET,
    "VISITOR_AUDIENCE": "chat",
    "OPERATOR_CLAIM": "groups=kit-operators",
}


@contextmanager
def page_of(
    deck: Path, monkeypatch: pytest.MonkeyPatch, groups: list[str] | None
) -> Generator[AppTest]:
    """The page as somebody of these groups opens it, or where None are given as a visitor of the demo does."""
    headers: dict[str, str] = {}
    settings: dict[str, object] = {}
    if groups is not None:
        headers[HEADER] = token(name="Ada Low", groups=groups)
        settings = {**SIGNED_IN}
    monkeypatch.setattr(type(st.context), "headers", property(lambda _: headers))
    with app_over(deck.parents[1] / "kit.db", monkeypatch, **settings):
        monkeypatch.setenv("KIT_DECK", str(deck))
        yield room("cards").run()


def press(page: AppTest, key: str) -> str:
    (button,) = [button for button in page.button if button.key == key]
    return shown(button.click().run())


@pytest.mark.req("SO-9")
def test_an_operator_promotes_and_the_page_says_who_and_from_when(
    deck: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    judge_sessions(deck, (POOR, GOOD), (GOOD, GOOD))
    with page_of(deck, monkeypatch, ["kit-operators"]) as page:
        text = press(page, "promote-rewards")
        assert "was promoted by Ada Low on" in text and "started again" in text
        assert not [button for button in page.button if button.key == "rollback-rewards"]
    assert (deck / "rewards.yaml").read_text() == NEXT
    assert not (deck / "rewards.next.yaml").exists()
    assert main(["evolve", "status"]) == 0
    assert "version 2 of rewards was promoted by Ada Low" in capsys.readouterr().out


@pytest.mark.req("SO-9")
def test_what_speaks_against_it_is_named_and_the_operator_takes_it_away(
    deck: Path, monkeypatch: pytest.MonkeyPatch
):
    judge_sessions(deck, (POOR, GOOD), (GOOD, POOR))
    with page_of(deck, monkeypatch, ["kit-operators"]) as page:
        text = press(page, "promote-rewards")
        assert "It stays as it is" in text and "end to end\\: 0\\.500" in text
        assert (deck / "rewards.yaml").read_text() == FILES["desk/rewards.yaml"]
        assert "was rolled back by Ada Low on" in press(page, "rollback-rewards")
    assert not (deck / "rewards.next.yaml").exists()


def test_what_was_never_judged_is_not_put_in_place(deck: Path, monkeypatch: pytest.MonkeyPatch):
    judge_sessions(deck, (POOR, GOOD), (GOOD, GOOD))
    with page_of(deck, monkeypatch, ["kit-operators"]) as page:
        changed = NEXT.replace("Knows the points and gifts.", "Knows it all.")
        (deck / "rewards.next.yaml").write_text(changed)
        assert "not committed" in press(page, "promote-rewards")
        git(deck, "commit", "-qam", "another new version")
        assert "never judged" in press(page, "promote-rewards")
    assert (deck / "rewards.yaml").read_text() == FILES["desk/rewards.yaml"]


@pytest.mark.req("SO-9")
@pytest.mark.parametrize("groups", [None, ["all"]])
def test_a_visitor_of_the_demo_and_whoever_is_no_operator_have_nothing_to_press(
    groups: list[str] | None, deck: Path, monkeypatch: pytest.MonkeyPatch
):
    judge_sessions(deck, (POOR, GOOD), (GOOD, GOOD))
    with page_of(deck, monkeypatch, groups) as page:
        assert "evolve promote rewards" in shown(page)
        keys = {button.key for button in page.button}
        assert keys.isdisjoint({"promote-rewards", "rollback-rewards"})
    assert (deck / "rewards.next.yaml").exists()
