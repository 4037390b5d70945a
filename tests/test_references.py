"""A place in what was shown, read in a text and put in words; the offline stand-in goes by it (PC1-S5.6d)."""

import pytest

from kit.core.event import AgentStarted, ToolStarted
from kit.core.ordinal_reference import LAST, parse_ordinal, resolve, spell_out
from kit.core.record import ShownComponent
from kit.settings import Settings
from kit.wire import open_kit


def shown(kind: str, *titles: str) -> list[ShownComponent]:
    return [
        ShownComponent(turn_id="t", agent="a", type=kind, id=f"{kind}-{n}", title=t, position=n) for n, t in enumerate(titles, 1)
    ]


SHOWN = [*shown("offer", "Ember Hill", "Harbor Roast", "Slow Tide"), *shown("receipt", "", "")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tell me about the third one you showed me", (3, "")),
        ("is the second offer still on?", (2, "offer")),
        ("the last one", (LAST, "")),
        ("what about #2", (2, "")),
        ("option 4 please", (4, "")),
        ("the 3rd deal", (3, "deal")),
        ("what did I buy the last time", None),
        ("my last purchase", None),
        ("find coffee deals", None),
        ("first, find coffee", None),
    ],
)
def test_a_place_is_told_from_a_time(text: str, expected: tuple[int, str] | None) -> None:
    assert parse_ordinal(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the third offer you showed me", "offer-3"),
        ("the second receipt", "receipt-2"),
        ("is the second one still on?", "offer-2"),
        ("is the second still on?", "offer-2"),
        ("the last offer", "offer-3"),
        ("the last one", "receipt-2"),
        ("#1", "offer-1"),
        ("the ninth offer", None),
        ("how many points do I have", None),
    ],
)
def test_what_is_meant_is_found_among_its_kind(text: str, expected: str | None) -> None:
    found = resolve(text, SHOWN)
    assert (found.id if found else None) == expected
    assert resolve(text, []) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("when does the third one expire?", "when does Slow Tide expire?"),
        ("when does the third expire?", "when does Slow Tide expire?"),
        ("what are the terms of the third offer you showed me?", "what are the terms of Slow Tide?"),
        ("the third deal that you found, is it on?", "Slow Tide, is it on?"),
        ("tell me about #3 please", "tell me about Slow Tide please"),
        ("find coffee", "find coffee"),
    ],
)
def test_a_name_takes_the_place_of_the_words_that_point(text: str, expected: str) -> None:
    assert spell_out(text, SHOWN[2]) == expected


@pytest.mark.req("PC1-S5.6d")
async def test_the_stand_in_looks_up_the_one_that_was_meant_by_its_own_agent_and_by_another() -> None:
    async with open_kit(Settings(store=":memory:", pace=0.0, today="2026-11-01")) as kit:
        asked: dict[str, str] = {}
        said: dict[str, str] = {}
        for session, first, second in (
            ("own", "show my last receipts", "which items were on the second one?"),
            ("other", "find coffee deals", "when does the third one expire?"),
        ):
            await kit.ask(first, kit.session(session))
            [one] = [one for one in kit.store.last_components(session) if one.position == (2 if session == "own" else 3)]
            reply = await kit.ask(second, kit.session(session))
            [tool] = [event.body for event in reply.events if isinstance(event.body, ToolStarted)]
            asked[session], said[session] = tool.args["query"], one.title or one.id
            if session == "other":
                [call] = [event.body for event in reply.events if isinstance(event.body, AgentStarted)]
                assert call.agent != one.agent and one.id in str(call.prior_context)
    assert asked == said
