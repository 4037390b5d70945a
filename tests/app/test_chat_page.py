"""The chat page, run by Streamlit's own test driver: real turns on the offline stand-in, a store of its own."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from kit.compose.read import read_outline
from kit.core.bodies.call import AgentStarted
from kit.core.bodies.guard import CallDropped
from kit.core.context import Principal, Session
from kit.core.fault import CANARY, CANARY_NUMBER
from kit.settings import HOME
from kit.stores.sqlite import SqliteStore
from kit.ui.shared import frame
from tests.app.logs import begin, end, failed, stamp
from tests.app.rooms import app_over, button, turns_in, whole_app
from tests.kits import MIXED
from tests.pages import marks, unescaped
from tests.sample_turn import a_turn

SUGGESTIONS = [
    suggestion.label
    for suggestion in read_outline(HOME / "cards" / "consumer").page.suggestions or ()
]
MINE = Principal(tenant_id="acme", user_id="u-001")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store of this test alone; the kit works without pauses."""
    with app_over(tmp_path / "kit.db", monkeypatch):
        yield tmp_path / "kit.db"


def open_page(session: str | None = None, **address: str | list[str]) -> AppTest:
    page = whole_app(**({"session": session} if session else {}), **address).run()
    assert not page.exception
    return page


def session_of(page: AppTest) -> str:
    value = page.query_params["session"]
    return value if isinstance(value, str) else value[0]


def ask(page: AppTest, message: str) -> AppTest:
    page.chat_input[0].set_value(message).run()
    assert not page.exception
    return page


def steps(page: AppTest) -> dict[str, tuple[str, str]]:
    """Sub-agent -> how its step stands, and the words on it."""
    ended = {":material/check_circle:": "complete", ":material/error:": "error"}
    told = [(one.label, ended[one.icon]) for one in page.expander if one.icon in ended]
    return {label.split("**")[1]: (state, label) for label, state in told}


def htmls(page: AppTest, kind: str) -> str:
    """What of the page is HTML of our own: `turn` is the panel, `found` cards and tables, `faults` chips."""
    return "\n".join(
        dict.fromkeys(
            one.proto.body for one in page.get("html") if f'class="{kind}"' in one.proto.body[:60]
        )
    )


def panel(page: AppTest) -> dict[str, str]:
    """Fact -> its value for programs."""
    return dict(re.findall(r'data-fact="(\w+)" data-value="([^"]*)"', htmls(page, "turn")))


def text(page: AppTest) -> str:
    """Everything a person can read on the page."""
    told = [*page.markdown, *page.caption, *page.error, *page.button]
    return "\n".join(
        [
            *(str(one.value if hasattr(one, "value") else one) for one in told),
            *(label for _, label in steps(page).values()),
        ]
    )


def put(
    store: Path,
    count: int,
    session_id: str,
    who: Principal = MINE,
    status: str = "ok",
) -> None:
    """Turns of an earlier process."""
    kept = SqliteStore(store)
    kept.open_session(Session(id=session_id, principal=who))
    for number in range(count):
        turn = a_turn(
            f"{session_id}-{number}", session_id, who.user_id, time.time() - 1000 + number
        )
        turn = turn.replace(message=f"question {number}")
        kept.begin_turn(turn)
        if status != "running":
            done = turn.replace(status=status, text=f"answer {number}", seconds=1.0)
            kept.end_turn(done, [], [])
    kept.close()


@pytest.mark.req("PC2-FR-15")
def test_a_mixed_question_shows_its_sub_agents_and_the_stored_routing(store: Path):
    page = ask(open_page(), MIXED)
    (turn,) = turns_in(store, session_id=session_of(page))
    assert turn.status == "ok" and len(turn.invoked) == 3
    assert [message.name for message in page.chat_message] == ["user", "assistant"]
    assert {name.lower(): state for name, (state, _) in steps(page).items()} == dict.fromkeys(
        turn.invoked, "complete"
    )
    told = panel(page)
    assert set(told["agents"].split(",")) == set(turn.invoked)
    assert (
        told["intents"] == f"{turn.intent_count}/{turn.intent_count}"
        and told["cap"] == f"{turn.cap_behavior} {turn.cap}"
    )
    shown = htmls(page, "turn")
    assert (
        f"{turn.input_tokens:,} in, {turn.output_tokens:,} out" in shown
        and "acme/u-001" in shown
        and "blocked" not in shown
    )
    assert 'data-found="Offer"' in htmls(page, "found") and 'data-found="Points"' in htmls(
        page, "found"
    )
    assert "offline stand-in" in text(page)
    canvas = "".join(one.proto.body for one in page.get("html") if "data-lane" in one.proto.body)
    assert re.findall('data-lane="([^"]+)"', canvas) == [
        "Orchestrator",
        "Support",
        "Rewards",
        "Shop",
        "Answer",
    ]
    assert canvas.count('data-phase="ended"') == 5 and "4,975 points" in canvas


def test_a_turn_nobody_finished_is_interrupted_and_can_be_asked_again(store: Path):
    put(store, 1, "s1", status="running")
    page = open_page("s1")
    assert "Interrupted" in text(page) and "interrupted before there was an answer" in text(page)
    assert not page.chat_input[0].disabled
    page.button(key="again-s1-0").click().run()
    assert not page.exception
    assert [message.name for message in page.chat_message] == ["user", "assistant"] * 2
    assert "None of us can help" in text(page)


def test_somebody_elses_session_is_neither_shown_nor_continued(store: Path):
    put(store, 1, "theirs", who=Principal(tenant_id="acme", user_id="u-002"))
    page = open_page("theirs")
    assert "question 0" not in text(page) and "answer 0" not in text(page)
    assert session_of(page) != "theirs"
    ask(page, "How many points do I have?")
    assert [turn.message for turn in turns_in(store, session_id="theirs")] == ["question 0"]


def test_a_long_session_shows_its_newest_turns(store: Path):
    put(store, 12, "old")
    page = open_page("old")
    shown = [one.value for one in page.markdown if one.value.startswith("answer")]
    assert shown == [f"answer {number}" for number in range(2, 12)]
    button(page, "Show earlier").click().run()
    assert len([one for one in page.markdown if one.value.startswith("answer")]) == 12


def test_a_message_of_100_kB_gets_a_reply_in_words(store: Path):
    page = ask(open_page(), "points " * 15_000)
    # Its beginning stands there, and more of it is folded.
    assert len(page.chat_message[0].markdown[0].value) < 1_000
    [whole] = [box for box in page.expander if box.label.startswith("The whole message, 10")]
    assert len(whole.markdown[0].value) > 20_000
    assert "too long" in text(page)
    assert max(len(one.value) for one in page.markdown) < 25_000


EVIL = "[free](http://example.invalid) ![](http://example.invalid/x.png) `$5 <b>x"


@pytest.mark.req("S-11")
def test_a_name_that_a_model_invented_is_text(store: Path):
    put(store, 1, "s", status="running")
    kept = SqliteStore(store)
    (turn,) = kept.turns(session_id="s")
    assert turn.status == "interrupted" and kept.claim_turn(turn.id)
    started, left_out = (
        AgentStarted(agent=EVIL, call_id="a", query=EVIL),
        CallDropped(agent=EVIL, call_id="b", reason="over_cap"),
    )
    bodies = [
        *begin(f"# {EVIL}"),
        (0.1, "s2", "s1", started),
        (0.2, "s2", "s1", failed(EVIL, "unknown_agent")),
    ]
    bodies += [(0.3, "s1", None, left_out), *end("Sorry.", EVIL)]
    kept.end_turn(
        turn.model_copy(update={"status": "ok", "text": "Sorry.", "seconds": 2.0}),
        stamp(bodies, turn.id),
        [],
    )
    kept.close()
    page = open_page("s")
    drawn = [
        *(one.label for one in page.expander),
        *(str(one.value) for one in (*page.markdown, *page.caption)),
    ]
    drawn = [text for text in drawn if "free" in text]
    assert len(drawn) == 4 and [mark for text in drawn for mark in marks(text)] == []


def test_a_kit_that_cannot_open_says_what_to_do(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("KIT_DECK", str(tmp_path / "nowhere"))
    page = open_page()
    (error,) = page.error
    assert "nowhere" in error.value and "Traceback" not in error.value
    monkeypatch.delenv("KIT_DECK")
    assert not page.run().error, "once it is put right, the page works"


@pytest.mark.req("PC2-S5.8")
def test_a_person_breaks_a_part_and_reads_so_in_plain_words(store: Path):
    page = open_page()
    assert page.button(key="reset").disabled
    page.toggle(key="fault-support=raise").set_value(True).run()
    ask(page, MIXED)
    for shown in (page, _anew(page)):
        told = text(shown) + htmls(shown, "turn")
        assert (
            "able to get an answer about support" in told
            and "had a problem on its side" in told
            and "zx-raw" not in told
        )
        assert (
            steps(shown)["Support"][0] == "error"
            and steps(shown)["Shop"][0] == steps(shown)["Rewards"][0] == "complete"
        )
        outcome, answer = told.index("Support failed"), told.index("able to get an answer about")
        assert outcome < answer, "who failed is said before the answer"
        lane = htmls(shown, "lane agent bad")
        assert "had a problem on its side, broken on purpose" in lane
        assert "Support fails in the middle of its work" in htmls(shown, "faults")
        assert shown.toggle(key="fault-support=raise").value, "it holds until it is switched off"
    page.button(key="reset").click().run()
    assert not page.toggle(key="fault-support=raise").value and "fault" not in page.query_params
    ask(page, "How many points do I have?")
    assert htmls(page, "faults").count("<li>") == 1, (
        "the new turn has no chip, the old one keeps its own"
    )


def _anew(page: AppTest) -> AppTest:
    """The same address in a new process, for a new visitor."""
    frame.open_host.clear()
    return open_page(**page.query_params)


@pytest.mark.req("S-11")
def test_faults_come_with_the_address_and_unknown_ones_are_told_as_text(store: Path):
    page = open_page(fault=["rewards=error", f"{EVIL}=timeout"], cap="1", pattern="no-such")
    assert page.toggle(key="fault-rewards=raise").value
    warning = page.warning[0].value
    assert EVIL in unescaped(warning) and marks(warning) == []
    assert "Not taken from the address: pattern=no-such" in unescaped(page.warning[1].value)
    ask(page, MIXED)
    (turn,) = turns_in(store, session_id=session_of(page))
    assert turn.cap == 1 and turn.pattern == "mediated" and panel(page)["cap"] == "over 1"
    assert "left out" in htmls(page, "turn")


def test_whoever_is_chosen_has_sessions_and_data_of_their_own(store: Path):
    page = ask(open_page("mine"), "How many points do I have?")
    page.selectbox(key="scenario-tenant").set_value("globex").run()
    assert not page.chat_message and page.pills
    page.selectbox(key="scenario-user").set_value("u-003").run()
    ask(page, "How many points do I have?")
    kept = SqliteStore(store)
    (turn,) = kept.turns(session_id=session_of(page), tenant_id="globex")
    assert (turn.tenant_id, turn.user_id) == ("globex", "u-003") and kept.session(
        turn.session_key
    ).location != "Rivermont"  # type: ignore[union-attr]
    kept.close()
    assert "globex/u-003" in htmls(page, "turn")
    page.query_params.clear()  # as Streamlit does on a change of page
    page.run()
    assert page.query_params["user"] in ("u-003", ["u-003"])
    stranger = open_page("mine", tenant="globex", user="no-such-user")
    assert "4,975" in text(stranger), "nobody of that name: it is the settings' own user"


@pytest.mark.req("PC2-FR-12")
def test_somebody_elses_data_is_blocked_and_stands_nowhere_on_the_page(store: Path):
    page = open_page()
    page.pills[0].set_value(next(label for label in SUGGESTIONS if "Someone else" in label)).run()
    assert not page.exception and steps(page)["Rewards"][0] == "error"
    shown = "\n".join(str(element.proto) for element in [*page.main, *page.sidebar])
    assert "1 blocked" in shown and "sent somebody else" in htmls(page, "faults")
    assert (
        CANARY not in shown
        and str(CANARY_NUMBER) not in shown
        and f"{CANARY_NUMBER:,}" not in shown
    )
    assert (
        "1 part broken on purpose, 1 said to be missing, 0 answers with a raw error"
        in "\n".join(element.value for element in page.sidebar.caption)
    )
    assert not page.toggle(key="fault-rewards=foreign_principal").value, (
        "it was for that one question"
    )


def test_thumbs_and_a_word_about_an_answer_are_kept(store: Path):
    page = ask(open_page(), "How many points do I have?")
    (thumbs,) = page.feedback
    assert not page.text_input
    thumbs.set_value(0).run()
    page.text_input[0].set_value("  too short ").run()
    again = _anew(page)
    assert again.feedback[0].value == 0 and again.text_input[0].value == "too short"
    again.feedback[0].set_value(1).run()
    kept = SqliteStore(store)
    (turn,) = kept.turns()
    given = kept.feedback(turn.id)
    kept.close()
    assert given is not None and (given.score, given.note) == (1, "too short")


def test_the_first_screen_says_what_this_is_and_what_the_panel_will_show(store: Path):
    page = ask(open_page(), "\n\t ")
    assert not page.chat_message, "an empty message asks nothing"
    assert len(page.pills[0].options) == 4 and "each part goes to the sub-agent" in text(page)
    assert "whose data was read" in htmls(page, "turn") and "Offer details" in htmls(page, "turn")
    introduction = r"You are u\-001 of acme. A rule-based stand-in answers, not a language model"
    assert introduction in text(page)
    before = session_of(ask(page, "how many points do I have"))
    assert introduction not in text(page), "only before the first turn"
    purpose = (
        "A demonstration: several sub-agents answer at once, and you can break one on purpose."
    )
    assert f"{purpose} Everything in it is simulated." in text(page), "always"
    button(page, "New chat").click().run()
    assert session_of(page) != before and not page.chat_message and page.pills
