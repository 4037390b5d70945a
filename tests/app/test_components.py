"""Cards and tables of what sub-agents found: only of those that answered, each thing once, and never as markup."""

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

from kit.core.bodies.call import AgentStarted, ToolStarted
from kit.core.bodies.speech import Component, Text
from kit.ui.chat.components import components_html, components_of
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.worlds.consumer.page import RENDERERS
from tests.app.logs import Stamped, answered, begin, end, failed, stamp

OFFER = {
    "id": "o1",
    "title": "200 points on Oat Milk",
    "product": "Oat Milk",
    "points": 200,
    "minimum": 2,
    "ends": "2026-11-20",
}
KINDS = (
    "offer",
    "product",
    "points",
    "reward",
    "receipt",
    "game",
    "restaurant",
    "retailer",
    "thing_unheard_of",
)
JSON = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-5, 10**7)
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(max_size=8),
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = """id title name product points price_cents minimum minimum_cents quantity date retailer retailers ends starts
balance pending earned_30_days spent_30_days methods affordable missing next_goal next_points step steps genre rating miles
address nearest opens closes lines status total_cents"""
PAYLOADS = some.dictionaries(some.sampled_from(FIELDS.split()), JSON, max_size=6)


def view_of(
    *shown: tuple[str, str, dict[str, Any]],
    fails: str = "",
    tools: dict[str, str] | None = None,
    says: str = "Here.",
) -> TurnView:
    """A turn in which agents showed these (agent, type, payload) from a tool each."""
    agents = dict.fromkeys(agent for agent, _, _ in shown)
    bodies: list[Stamped] = [
        (0.1, f"a-{agent}", "s1", AgentStarted(agent=agent, call_id=agent, query="q"))
        for agent in agents
    ]
    for place, (agent, kind, payload) in enumerate(shown):
        span, tool = f"t{place}", (tools or {}).get(str(payload.get("id")), "search")
        bodies.append((0.2, span, f"a-{agent}", ToolStarted(agent=agent, tool=tool, call_id=span)))
        bodies.append((0.3, span, f"a-{agent}", Component(agent=agent, type=kind, payload=payload)))
    bodies += [
        (0.9, f"a-{a}", "s1", failed(a, "timeout") if a == fails else answered(a)) for a in agents
    ]
    said: Stamped = (1.9, "s1", None, Text(channel="answer", text=says))
    return advance(TurnView(), stamp([*begin(), *bodies, said, *end(says, *agents)]))


def html(view: TurnView) -> str:
    """What the consumer deck draws of a turn."""
    return components_html(view, RENDERERS)


class Elements(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_the_answer_has_said_is_folded_away_and_what_it_left_out_is_open():
    for answer, folded in (("Buy Oat Milk twice.", True), ("Buy something.", False)):
        page = html(view_of(("shop", "offer", OFFER), says=answer))
        assert (
            ("<details>" in page) == folded
            and ("<details open>" in page) != folded
            and "1 item" in page
        )
        text = Elements(page).text
        assert all(part in text for part in ("200 points", "Buy 2", "Until 20 Nov 2026"))


def test_only_what_an_agent_that_answered_chose_to_show_is_shown_and_that_once():
    farm = ("play", "game", {"id": "g", "name": "Farm"})
    tea = ("shop", "offer", OFFER | {"id": "o2", "product": "Tea"})
    view = view_of(("shop", "offer", OFFER), ("offer_details", "offer", OFFER), tea, farm)
    assert [(kind, len(shown)) for kind, shown in components_of(view)] == [
        ("offer", 2),
        ("game", 1),
    ]
    chosen = html(view_of(("shop", "offer", OFFER), tea, farm, tools={"o2": "render_offers"}))
    assert "Tea" in chosen and "Oat Milk" not in chosen and "Farm" in chosen
    assert [kind for kind, _ in components_of(view_of(tea, farm, fails="shop"))] == ["game"]
    assert html(advance(TurnView(), stamp([*begin(), *end("Hello.")]))) == ""


@pytest.mark.req("S-11")
@pytest.mark.parametrize("kind", KINDS)
def test_markup_in_a_payload_is_text(kind: str):
    evil = '<img src=x onerror=alert(1)>"><script>x</script>'
    row = dict.fromkeys(
        ("title", "name", "product", "retailer", "status", "address", "category", "kind"), evil
    )
    page = Elements(
        html(view_of(("shop", kind, {"id": evil, **row}), (evil, evil, {"title": evil})))
    )
    assert (
        evil in page.text and not page.tags & {"img", "script"} and "onerror" not in page.attributes
    )


@settings(max_examples=20, deadline=None, derandomize=True)
@given(some.lists(some.tuples(some.sampled_from(KINDS), PAYLOADS), min_size=1, max_size=4))
def test_whatever_a_payload_holds_the_page_is_drawn(
    shown: list[tuple[str, dict[str, Any]]],
):
    assert isinstance(html(view_of(*(("shop", kind, payload) for kind, payload in shown))), str)


def test_a_renderer_may_draw_with_streamlit_itself():
    code = """
import streamlit as st
from kit.ui.chat.components import draw_components
from tests.app.test_components import OFFER, view_of

def draw(payloads):
    st.metric("Offers", len(payloads))
    return []

draw_components(view_of(("shop", "offer", OFFER), ("shop", "thing", {"title": "Plain"})), {"offer": draw})
"""
    page = AppTest.from_string(code, default_timeout=300).run()
    assert not page.exception and page.metric[0].value == "1"
    (drawn,) = page.get("html")
    assert "Plain" in drawn.proto.body and "Oat Milk" not in drawn.proto.body
