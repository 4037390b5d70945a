"""What a notebook shows of a reply, a trace, a team and a deck: small, in the reader's colours,
with foreign text as text."""

import re
from html.parser import HTMLParser
from typing import Any, Protocol

import pytest

from kit import open_kit
from kit.core.card import AgentCard
from kit.models.scripted import Line, ScriptedModel
from tests.kits import OFFLINE, asks, lead_over, stitched

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'<b>&"
PLAIN = {
    "style",
    "div",
    "p",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "span",
    "i",
    "details",
    "summary",
}


class Shown(Protocol):
    """What a notebook can show."""

    def _repr_html_(self) -> str: ...


class Page(HTMLParser):
    """The elements, attributes and words of a piece of HTML."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.words = set[str](), set[str](), list[str]()
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)


async def values_of(words: str) -> dict[str, Shown]:
    """A reply, its trace, the team and the deck, all of which hold these words wherever a stranger could put some."""

    async def lookup() -> str:
        """Look it up."""
        raise ConnectionError(words)

    desk = AgentCard(id="desk", description=f"Looks up {words}", model="offline", tools=("lookup",))
    shop = AgentCard(id="shop", description="Sells.", model="offline")
    deck = lead_over(desk, shop, name=words, tools=[lookup])
    models: dict[str, Any] = {
        "lead": ScriptedModel(asks("desk", "shop", query=words), stitched),
        "desk": ScriptedModel(Line(calls=[("lookup", {})]), Line(f"It is {words}.")),
        "shop": ScriptedModel(Line(error=ConnectionError(words))),
    }
    async with open_kit(OFFLINE, deck=deck, models=models) as kit:
        reply = await kit.ask(words, kit.session("s"))
        return {"reply": reply, "trace": reply.trace, "team": kit.team, "deck": kit.deck}


@pytest.mark.req("K-26")
async def test_no_word_of_a_person_a_model_a_tool_or_a_card_becomes_an_element():
    for name, value in (await values_of(EVIL)).items():
        page = Page(value._repr_html_())
        assert page.tags <= PLAIN and page.attributes <= {"class", "dir", "style"}, name
        assert name == "trace" or EVIL in "".join(page.words), name


@pytest.mark.req("K-26")
async def test_each_says_what_a_reader_looks_for_first():
    values = await values_of("tea")
    words = {name: " ".join(Page(value._repr_html_()).words) for name, value in values.items()}
    assert all(
        text in words["reply"]
        for text in ("ok", "model calls", "It is tea.", "shop failed: exception", "trace")
    )
    assert all(text in words["trace"] for text in ("desk · lookup", "ConnectionError", "spans"))
    assert re.search(r"lead .*└ desk \S+ lookup +8 s", words["team"])
    assert all(text in words["deck"] for text in ("3 cards", "cap 4", "Looks up tea", "active"))


@pytest.mark.req("K-26")
async def test_they_are_small_and_take_their_colours_from_the_notebook():
    for name, value in (await values_of("tea " * 3000)).items():
        source = value._repr_html_()
        assert len(source) < 16_000, f"{name}: {len(source)}"
        assert set(re.findall(r"[{;\s]color:([^;}]+)", source)) == {"inherit"}, (
            "text in a colour of its own vanishes on one ground"
        )
