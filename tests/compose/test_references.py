"""What a text means of the things shown, read from its words and put in words; the offline stand-in
goes by it (PC1-S5.6d)."""

import pytest

from kit.compose.reference import Kind, leans_back, points_back, resolve
from kit.core.record import ShownComponent
from kit.settings import Settings
from kit.wire import open_kit

KINDS = {
    "offer": Kind(words="offer deal oferta"),
    "receipt": Kind(words="receipt recibo"),
    "reward": Kind(words="reward premio", price="points", ends="ends"),
    "product": Kind(words="product producto", price="price_cents"),
}


def shown(kind: str, *titles: str, turn: str = "t", **fields: list[object]) -> list[ShownComponent]:
    return [
        ShownComponent(
            turn_id=turn,
            agent="a",
            type=kind,
            id=f"{kind}-{n}",
            title=title,
            position=n,
            payload={name: values[n - 1] for name, values in fields.items()},
        )
        for n, title in enumerate(titles, 1)
    ]


TALK = [
    *shown(
        "offer",
        "Old Mill",
        "North Pier",
        "Blue Gate",
        "Kettle",
        turn="t1",
        retailers=[["Larder"], ["Harvest"], [], []],
    ),
    *shown(
        "product",
        "Green Tea",
        "Black Tea",
        turn="t2",
        price_cents=[499, 399],
        brand=["Leafwell", "Copper Pot"],
    ),
    *shown(
        "offer",
        "Ember Hill",
        "Harbor Roast",
        "Slow Tide",
        turn="t3",
        retailers=[["Daily Larder"], ["Fernfield"], []],
    ),
    *shown(
        "reward",
        "Gift card",
        "Mug",
        "Tote",
        turn="t4",
        points=[3000, 900, 1500],
        ends=["2026-11-09", "2026-12-01", "2026-11-03"],
    ),
]
"""Four turns, the newest last."""


@pytest.mark.req("PC1-S5.6d")
@pytest.mark.parametrize(
    ("text", "turn", "title"),
    [
        ("the third offer you showed me", "t3", "Slow Tide"),
        ("the third one", "t4", "Tote"),
        ("tell me about offer 3", "t3", "Slow Tide"),
        ("the fourth offer", "t1", "Kettle"),
        ("the second product", "t2", "Black Tea"),
        ("the last offer", "t3", "Slow Tide"),
        ("I take the cheapest", "t4", "Mug"),
        ("which is the cheapest product?", "t2", "Black Tea"),
        ("the most expensive reward", "t4", "Gift card"),
        ("the one from Larder", "t3", "Ember Hill"),
        ("is the offer at Harvest still on", "t1", "North Pier"),
        ("how much is the one from Leafwell?", "t2", "Green Tea"),
        ("la tercera oferta que me mostraste", "t3", "Slow Tide"),
        ("¿cuándo vence la 2ª oferta?", "t3", "Harbor Roast"),
        ("el último premio", "t4", "Tote"),
        ("la más barata", "t4", "Mug"),
        ("el producto más caro", "t2", "Green Tea"),
        ("la de Fernfield", "t3", "Harbor Roast"),
        ("the third receipt", None, None),
        ("the one from Nowhere", None, None),
        ("the cheapest offer", None, None),
        ("la semana última compra", None, None),
        ("sum up the first arc of Ashen Tide", None, None),
        ("find me the last flight to Rome", None, None),
        ("does the second expire soon?", "t4", "Mug"),
        ("the first, and what it costs", "t4", "Gift card"),
        ("tell me more about the third", "t4", "Tote"),
        ("the second coffee offer", "t3", "Harbor Roast"),
        ("the last two", "t4", "Tote"),
        ("¿sigue el segundo?", "t4", "Mug"),
        ("number two", "t4", "Mug"),
        ("opción tres", "t4", "Tote"),
        ("number twelve", None, None),
        ("which one expires first?", "t4", "Tote"),
        ("¿cuál vence primero?", "t4", "Tote"),
        ("which offer ends first", None, None),
    ],
)
def test_over_all_turns_the_newest_of_the_type_asked_for_is_meant(
    text: str, turn: str | None, title: str | None
):
    found = resolve(text, TALK, KINDS)
    assert ((found.turn_id, found.title) if found else (None, None)) == (turn, title)
    assert found is None or points_back(text, KINDS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I want that one", True),
        ("are those still valid", True),
        ("¿cuál de ellas me conviene?", True),
        ("find coffee deals", False),
        ("dinner for 4 at 8", False),
        ("what did I buy the last time", False),
        ("sum up the first arc of Ashen Tide", False),
        ("no one answers me", False),
    ],
)
def test_references_are_looked_up_only_for_words_that_point(text: str, expected: bool):
    assert points_back(text, KINDS) is expected


def test_a_message_that_names_all_it_means_stands_alone():
    assert leans_back("and what would it bring me in points") and leans_back(
        "¿y cuántos puntos da eso si compro dos?"
    )
    assert leans_back("how about tea") and not leans_back(
        "how many points does Harbor Roast coffee bring"
    )


@pytest.mark.req("PC1-S5.6d")
@pytest.mark.parametrize(
    "second",
    [
        "what are the terms of the third offer you showed me?",
        "terms of offer 3?",
        "términos de la oferta 3",
    ],
)
async def test_after_another_turn_the_third_offer_is_still_an_offer_and_the_answer_names_it(
    second: str,
):
    async with open_kit(Settings(store=":memory:", pace=0.0, today="2026-11-01")) as kit:
        session = kit.session("s")
        await kit.ask("find coffee deals", session)
        third = next(
            one
            for one in kit.store.shown_components(session.key)
            if (one.type, one.position) == ("offer", 3)
        )
        await kit.ask("what rewards can I get with my points?", session)
        assert kit.store.shown_components(session.key)[-1].type == "reward"
        reply = await kit.ask(second, session)
    assert third.title in reply.text
