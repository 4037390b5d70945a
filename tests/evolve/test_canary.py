"""Two versions of a card share the sessions of a deck: who has which is fixed, bound early, and told by the trace."""

from pathlib import Path

import pytest

from kit.cli import main
from kit.compose.canary import new_for, place_of
from kit.compose.deck import Deck, load_deck
from kit.core.bodies.call import AgentStarted
from kit.core.bodies.turn import TurnStarted
from kit.core.context import OPERATOR, SessionKey
from kit.core.errors import BindError, DeckError
from kit.wire import open_kit
from tests.evolve.shared_deck import (
    BALANCE,
    FILES,
    NEW_ANSWER,
    OLD_ANSWER,
    gaining_a_gift,
    models,
    sessions_above,
    sessions_below,
    settings,
    write_deck,
)
from tests.kits import bodies

SHARING = FILES["desk/deck.yaml"] + "canary: {{rewards: {{share: {share}}}}}\n"
SESSIONS = [SessionKey(f"tenant{number % 7}", f"s{number}") for number in range(20_000)]


def with_the_new(deck: Deck) -> set[SessionKey]:
    return {session for session in SESSIONS if "rewards" in new_for(deck, session)}


@pytest.mark.req("SO-9", "SO-21")
def test_five_sessions_of_a_hundred_have_the_new_version_unless_the_deck_says_otherwise(
    tmp_path: Path,
):
    usual = with_the_new(load_deck(write_deck(tmp_path)))
    # Four standard deviations of 20,000 draws of 5 %.
    assert abs(len(usual) / len(SESSIONS) - 0.05) < 0.0062
    wider = with_the_new(load_deck(write_deck(tmp_path, deck=SHARING.format(share=0.2))))
    assert abs(len(wider) / len(SESSIONS) - 0.2) < 0.0114
    assert usual < wider, "a share that grows takes the new version from nobody"


@pytest.mark.req("SO-9")
def test_a_session_has_the_same_place_in_every_process():
    """Written down: a place that hung on the process would be another one tomorrow."""
    places = [
        place_of(SessionKey("acme", "s0"), "rewards"),
        place_of(SessionKey("acme", "s0"), "shop"),
        place_of(SessionKey("other", "s0"), "rewards"),
    ]
    assert places == pytest.approx([0.797735, 0.864567, 0.232799], abs=1e-6)


@pytest.mark.req("SO-9")
async def test_a_session_keeps_its_version_and_each_turn_says_which_one_answered(tmp_path: Path):
    deck = write_deck(tmp_path, deck=SHARING.format(share=0.5))
    expected = {
        "2-": (NEW_ANSWER, sessions_below(0.5, 2)),
        "1-": (OLD_ANSWER, sessions_above(0.5, 2)),
    }
    async with open_kit(settings(deck), models=models()) as kit:
        for prefix, (answer, names) in expected.items():
            for name in names * 2:
                reply = await kit.ask(BALANCE, kit.session(name, "acme", "alice"))
                assert reply.text == answer
                [begun] = bodies(kit.store.events(reply.turn_id, OPERATOR), TurnStarted)
                assert begun.versions["rewards"].startswith(prefix)
                assert reply.trace.spans[0].attributes["versions"] == begun.versions
                # A fork of it has the version of its session, too.
                span = next(span for span in reply.trace.spans if span.agent == "rewards")
                who = kit.session("", "acme", "alice").principal
                forked = await kit.fork(reply.turn_id, span.id, who=who)
                assert forked.text == answer
                assert bodies(forked, TurnStarted)[0].versions == begun.versions


@pytest.mark.req("SO-9")
async def test_a_new_version_that_cannot_be_bound_is_a_fault_before_any_turn(tmp_path: Path):
    broken = FILES["desk/rewards.next.yaml"].replace(
        "prompt_blocks", "tools: [refund]\nprompt_blocks"
    )
    deck = write_deck(tmp_path, rewards_next=broken)
    with pytest.raises((BindError, DeckError), match="refund"):
        async with open_kit(settings(deck), models=models()):
            pass


NEXT = FILES["desk/rewards.next.yaml"]


@pytest.mark.req("SO-9")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards_next": NEXT.replace("rich", "ritch")}, "rewards.next.yaml:4: unknown block"),
        ({"rewards_next": NEXT.replace('"2"', '"1"')}, "rewards.next.yaml:5: both versions"),
        ({"lead": FILES["desk/lead.yaml"].replace("eval:", "#")}, "'lead' has no eval"),
        ({"rewards_next": NEXT.replace("id: rewards", "id: reward")}, "no version in place"),
        ({"rewards_next": NEXT + "status: draft\n"}, "is not bound here"),
        ({"deck": SHARING.format(share=0)}, "deck.yaml:4"),
    ],
)
def test_check_names_file_and_line_of_what_is_wrong_with_a_new_version(
    changes: dict[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["check", str(write_deck(tmp_path, **changes))]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.req("SO-9")
def test_check_says_what_is_shared_and_what_shares_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    deck = write_deck(tmp_path)
    assert main(["check", str(deck)]) == 0
    out = capsys.readouterr().out
    assert "5.0% of the sessions have version 2, the others 1" in out
    assert "is used by no card" not in out, "the new version uses its block"
    deck = write_deck(tmp_path, deck=FILES["desk/deck.yaml"] + "canary: {shop: {share: 0.1}}\n")
    assert main(["check", str(deck)]) == 0
    assert "no file holds a new version of 'shop'" in capsys.readouterr().out


@pytest.mark.req("SO-19")
async def test_a_tool_that_a_card_gains_is_bound_in_its_new_version_alone(tmp_path: Path):
    gains = gaining_a_gift("since: 2026-10-20, flag: gifts")
    deck = write_deck(tmp_path, rewards_next=gains, deck=SHARING.format(share=0.5))
    (deck.parent / "settings").mkdir()
    (deck.parent / "settings" / "default.yaml").write_text("flags: {gifts: false}\n")

    def gift() -> str:
        """Sends a gift."""
        return "sent"

    tools: dict[str, bool] = {}
    async with open_kit(settings(deck), models=models(), tools=[gift]) as kit:
        for name in (*sessions_below(0.5, 1), *sessions_above(0.5, 1)):
            reply = await kit.ask(BALANCE, kit.session(name, "acme", "alice"))
            [version] = bodies(reply, TurnStarted)[0].versions.values()
            prompt = kit.store.prompt(bodies(reply, AgentStarted)[0].cohort, 1e12)
            assert prompt is not None
            tools[version[0]] = any("gift" in str(tool) for tool in prompt.tools)
    assert tools == {"1": False, "2": True}
