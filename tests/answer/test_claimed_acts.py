"""What an answer says of an act is what became of it: one that failed or was refused is not told as done, and one that
was done is not told as left undone."""

from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage

from kit.core.card import AgentCard
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.runtime.turn import run_turn
from kit.settings import HOME, Settings
from kit.tools.tool import LimitedTool, ToolLimits
from kit.wire import open_kit
from tests.kits import ALICE, OFFLINE, answering, failing, small_deck, small_kit

MESSAGE = "How many points do I have, and redeem 500 points for a gift card"
ASKS = Line(
    calls=[
        ("ask_points", {"query": "how many points do I have", "intent_count": 2}),
        ("ask_gift_cards", {"query": "redeem 500 points for a gift card", "intent_count": 2}),
    ]
)
ASKS_ALONE = Line(calls=[("ask_gift_cards", {"query": MESSAGE, "intent_count": 1})])
BALANCE = "You have 5,000 points."
DONE = "500 points were redeemed for a gift card of Larder."
NOT_DONE = "This was not done, because you said no."
CLAIM = "You have 5,000 points, and your 500 points were redeemed."


def redeem_points(points: int) -> str:
    """Redeems points."""
    return DONE


def look_up(card: str) -> str:
    """Looks a gift card up."""
    return "Larder has cards of 10 dollars."


def gift_cards(says: str, looks_up: bool) -> ScriptedModel:
    """Redeems, and says what it says whatever came of it."""
    calls: list[tuple[str, dict[str, Any]]] = [("redeem_points", {"points": 500})]
    if looks_up:
        calls.append(("look_up", {"card": "Larder"}))

    def script(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            return Line(says)
        return Line(calls=calls)

    return ScriptedModel(script)


async def told(
    composed: str, agent: ScriptedModel, yes: bool | None = None, asks: Line = ASKS
) -> Reply:
    """What a user reads where the orchestrator words the answer so, twice; with an answer to the question of a pause."""
    card = AgentCard(
        id="gift_cards",
        description="Redeems points.",
        model="offline",
        tools=("redeem_points", "look_up"),
    )
    models = {
        "orchestrator": ScriptedModel(asks, composed, composed),
        "points": answering(BALANCE),
        "gift_cards": agent,
    }
    confirm = ToolLimits(confirm="Redeem {points} points for a gift card?")
    tools = {"redeem_points": LimitedTool(redeem_points, confirm), "look_up": look_up}
    settings = Settings.read({}).with_(model="offline", store=":memory:", pace=0.0)
    deck = small_deck(["points", "gift_cards"], [card])
    async with open_kit(settings, deck=deck, models=models, tools=tools) as kit:
        reply = await kit.ask(MESSAGE, kit.session("s"))
        if yes is not None:
            assert reply.status == "paused"
            reply = await kit.resume(reply.turn_id, yes)
    return reply


@pytest.mark.req("PC1-R-7")
async def test_an_act_of_an_agent_that_failed_is_not_told_as_done_in_another_form_of_its_verb():
    reply = await told(CLAIM, failing(OSError("down")))
    assert "redeemed" not in reply.text and BALANCE in reply.text
    assert "I wasn't able to get an answer about gift cards right now." in reply.text


@pytest.mark.req("K-12")
@pytest.mark.parametrize("looks_up", [False, True])
@pytest.mark.parametrize("asks", [ASKS, ASKS_ALONE], ids=["one of two", "alone"])
async def test_an_act_that_its_user_said_no_to_is_not_told_as_done(looks_up: bool, asks: Line):
    reply = await told(CLAIM, gift_cards(DONE, looks_up), yes=False, asks=asks)
    assert "redeemed" not in reply.text
    assert reply.text.count("not done, because you said no") == 1
    assert (BALANCE in reply.text) == (asks is ASKS)


@pytest.mark.req("K-12")
async def test_what_an_agent_found_beside_an_act_that_its_user_said_no_to_is_told():
    found = "Larder has cards of 10 dollars."
    reply = await told(f"{BALANCE} {found}", gift_cards(found, looks_up=True), yes=False)
    assert reply.text.startswith(f"{BALANCE} {found}")
    assert reply.text.count("not done, because you said no") == 1


@pytest.mark.req("K-12")
@pytest.mark.parametrize("asks", [ASKS, ASKS_ALONE], ids=["one of two", "alone"])
@pytest.mark.parametrize(
    "denial",
    [
        "Nothing was redeemed, because gift cards are not available.",
        "Nothing was redeemed.",
        "No points were redeemed for a gift card.",
        "Your 500 points could not be redeemed.",
        "I did not redeem your points.",
        "No se ha canjeado nada (redeem).",
    ],
)
async def test_an_act_that_was_done_is_not_told_as_left_undone(denial: str, asks: Line):
    told_so = f"{BALANCE} {denial}"
    reply = await told(told_so, gift_cards(DONE, looks_up=False), yes=True, asks=asks)
    assert DONE in reply.text and denial not in reply.text


@pytest.mark.req("K-12")
@pytest.mark.parametrize("asks", [ASKS, ASKS_ALONE], ids=["one of two", "alone"])
@pytest.mark.parametrize(
    "says",
    [
        "I'm sorry, nothing was redeemed.",
        "I could not redeem your points for a gift card.",
        "No se ha podido canjear nada.",
        "900 points were redeemed for a gift card of Larder.",
        "Your 400 points were redeemed.",
    ],
)
async def test_an_agent_that_tells_its_own_act_as_it_was_not_is_not_believed(says: str, asks: Line):
    composed = says if asks is ASKS_ALONE else f"{BALANCE} {says}"
    reply = await told(composed, gift_cards(says, looks_up=False), yes=True, asks=asks)
    assert DONE in reply.text and says not in reply.text


@pytest.mark.req("K-12")
async def test_what_an_agent_says_beside_its_act_stays():
    says = f"{DONE} You do not have any other gift card."
    agent = gift_cards(says, looks_up=False)
    reply = await told(f"{BALANCE} {says}", agent, yes=True)
    assert says in reply.text


@pytest.mark.req("K-12")
@pytest.mark.parametrize("says", ["Which shop would you like?", "Have a nice day."])
async def test_an_act_of_which_its_agent_says_nothing_is_told(says: str):
    reply = await told(says, gift_cards(says, looks_up=False), yes=True, asks=ASKS_ALONE)
    assert DONE in reply.text


CLAIMS = [
    "500 points were redeemed for a gift card of Larder.",
    "I've just redeemed your points. Enjoy!",
    "Done! Your gift card is on its way.",
    "Great news: your points have now been redeemed.",
    "Ya se han canjeado tus 500 puntos.",
    "All done.",
]
NOT_BEGUN = "nothing was done for this"


@pytest.mark.req("K-12")
@pytest.mark.parametrize("asks", [ASKS, ASKS_ALONE], ids=["one of two", "alone"])
@pytest.mark.parametrize("says", CLAIMS)
async def test_an_agent_that_calls_nothing_has_done_nothing_whatever_it_says(says: str, asks: Line):
    reply = await told(f"{BALANCE} {says}", answering(says), asks=asks)
    assert NOT_BEGUN in reply.text.lower() and says not in reply.text


@pytest.mark.req("K-12")
async def test_an_act_that_is_claimed_beside_a_lookup_is_said_to_be_not_done():
    says = "Larder has cards of 10 dollars, and 500 points were redeemed for one."
    looks_up = ScriptedModel(Line(calls=[("look_up", {"card": "Larder"})]), says)
    reply = await told(f"{BALANCE} {says}", looks_up)
    assert NOT_BEGUN in reply.text.lower()


@pytest.mark.parametrize(
    "says",
    [
        "Larder has cards of 10 dollars.",
        "Points can be redeemed for gift cards in steps of 100.",
        "I can redeem 500 points for you: shall I?",
        "No points were redeemed yet.",
        "The shop was closed in May.",
    ],
)
@pytest.mark.parametrize("looks_up", [False, True])
async def test_an_agent_that_claims_no_act_is_told_as_it_speaks(says: str, looks_up: bool):
    script = [Line(calls=[("look_up", {"card": "Larder"})])] if looks_up else []
    reply = await told(f"{BALANCE} {says}", ScriptedModel(*script, says))
    assert says in reply.text and NOT_BEGUN not in reply.text.lower()


async def test_of_what_was_done_at_some_time_an_agent_may_tell_in_its_own_words():
    says = "Your last points were redeemed for a card of Larder in May."
    asks = Line(
        calls=[("ask_gift_cards", {"query": "when did I last redeem points", "intent_count": 1})]
    )
    looks_up = ScriptedModel(Line(calls=[("look_up", {"card": "Larder"})]), says)
    reply = await told(says, looks_up, asks=asks)
    assert reply.text.startswith(says) and NOT_BEGUN not in reply.text.lower()


@pytest.mark.req("K-12")
@pytest.mark.parametrize("says", CLAIMS)
async def test_an_orchestrator_that_asks_nobody_has_done_nothing_whatever_it_says(says: str):
    reply = await told("", answering("never asked"), asks=Line(says))
    assert NOT_BEGUN in reply.text.lower()
    for harmless in ("Hello! What can I do for you?", "You are welcome, glad it is done."):
        reply = await told("", answering("never asked"), asks=Line(harmless))
        assert reply.text == harmless


async def test_where_nobody_can_act_nothing_is_said_of_acts():
    kit = small_kit([Line("All done, I have sent you my best wishes.")], {"points": answering("-")})
    reply = await run_turn("thanks", ALICE, kit)
    assert reply.text == "All done, I have sent you my best wishes."


@pytest.mark.req("K-12")
async def test_an_act_that_nobody_called_is_not_told_beside_one_that_was_done():
    claim = f"{BALANCE} {DONE} Your coupon has been redeemed too."
    reply = await told(claim, gift_cards(DONE, looks_up=False), yes=True)
    assert DONE in reply.text and "coupon" not in reply.text


@pytest.mark.req("K-12")
async def test_a_monolith_that_passes_over_its_own_act_tells_it_all_the_same():
    calls: list[tuple[str, dict[str, Any]]] = [
        ("points_left", {}),
        ("redeem_points", {"points": 500, "shop": "Harvest Market"}),
    ]
    monolith = ScriptedModel(Line(calls=calls), BALANCE, BALANCE)
    models = {"desk": monolith, "points": "offline", "gift_cards": "offline"}
    settings = OFFLINE.with_(deck=HOME / "cards" / "gifts", store=":memory:")
    async with open_kit(settings, models=models) as kit:
        asked = await kit.ask(MESSAGE, kit.session("s"), "monolith")
        reply = await kit.resume(asked.turn_id, True)
    assert "500 points were redeemed for a gift card of Harvest Market" in reply.text
