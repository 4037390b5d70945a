"""What a deck says about its chat page: the words of the first screen, whom to ask as, and how what
was found is drawn."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pydantic import Field

from kit.core.card import AgentCard
from kit.core.display.agent_name import heading
from kit.core.errors import KitError
from kit.core.fault import parse as parse_fault
from kit.core.value import Value

Payload = Mapping[str, Any]
"""The fields of one component, as its tool sent them."""
_MOST_SUGGESTIONS = 4
_SENTENCE = re.compile(r"\A(.+?[.!?])(?:\s|$)", re.DOTALL)


class Suggestion(Value):
    """A question that can be asked with one click."""

    label: str
    question: str
    faults: tuple[str, ...] = ()
    """What goes wrong while it is answered, as `agent=kind`."""


class Scene(Suggestion):
    """A scene of the demo page: a question, and what to look at in its turn."""

    look: str
    cap: int | None = Field(default=None, gt=0)
    """Most sub-agents in this turn; None takes what the page has."""


class Person(Value):
    """Somebody on whose behalf the page can ask."""

    tenant_id: str
    user_id: str
    name: str = ""
    """How the list of people shows them; empty shows the user id."""
    location: str | None = None


class PageSettings(Value):
    """The section `page:` of deck.yaml."""

    title: str = "What can I look up for you?"
    introduction: str = (
        "Ask several things in one message: each part goes to the sub-agent that knows it, all work at the same time, "
        "and you get one answer, also when a part fails."
    )
    placeholder: str = "Ask a question"
    """What the empty input says."""
    suggestions: tuple[Suggestion, ...] | None = None
    """None makes them of the sub-agents' cards."""
    suggestions_note: str = ""
    """A line under the suggestions."""
    scenes: tuple[Scene, ...] = ()
    """Questions that the demo page plays, in this order; without any it plays the suggestions."""
    faults: tuple[str, ...] = ()
    """Faults that the scenario panel offers at once, as `agent=kind`; the others are one choice away."""
    quiet_after: float = Field(default=2.0, gt=0)
    """Seconds in which a sub-agent at work did nothing, after which its step says that it is quiet:
    by then people look for a sign of life."""
    stalled_after: float = Field(default=6.0, gt=0)
    """As above, for saying that it has stalled: three quarters of what most may take, and time to think of Stop."""
    people: str | tuple[Person, ...] = ()
    """A list, or a reference such as `package.module:people` to a function that returns one, given
    the data folder and the environment variables that deck.yaml names."""
    renderers: str | None = None
    """A reference such as `package.module:RENDERERS` to a mapping of component types to Renderers.
    Any other type is drawn as a card of its first fields."""


class ComponentCard(Value):
    """One thing that was found."""

    title: str
    mark: str = ""
    """What counts most about it, such as a price or a state."""
    lines: tuple[str, ...] = ()
    heading: str = ""
    """What kind of thing it is; empty takes the words of its component type."""


class ComponentTable(Value):
    """Things that are read down a column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figures: frozenset[int] = frozenset()
    """Columns set flush right."""
    heading: str = ""
    """As of a card."""


class Renderer(Protocol):
    """Draws the components of one type in a turn.

    It returns cards and tables, whose words the page escapes and lays out. It may also draw with
    Streamlit itself: what it draws stands above them.
    """

    def __call__(
        self, payloads: Sequence[Payload], /
    ) -> Sequence[ComponentCard | ComponentTable]: ...


def scenes_of(page: PageSettings) -> tuple[Scene, ...]:
    """Returns the scenes of a deck; the suggestions where it names none."""
    if page.scenes:
        return page.scenes
    scenes: list[Scene] = []
    for suggestion in page.suggestions or ():
        scenes.append(Scene(look=suggestion.question, **suggestion.model_dump()))
    return tuple(scenes)


def page_faults(
    page: PageSettings, agents: Collection[str], root: str
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yields the place and the words of each fault of `page` that cannot be read or names no agent of the deck."""
    sections: list[tuple[tuple[str | int, ...], tuple[str, ...]]] = [(("page",), page.faults)]
    for number, question in enumerate(page.suggestions or ()):
        sections.append((("page", "suggestions", number), question.faults))
    for number, scene in enumerate(page.scenes):
        sections.append((("page", "scenes", number), scene.faults))
    for path, texts in sections:
        for number, text in enumerate(texts):
            try:
                parse_fault(text, agents, root)
            except KitError as error:
                yield (*path, "faults", number), str(error)


def suggestions_of(cards: Sequence[AgentCard]) -> tuple[Suggestion, ...]:
    """Makes suggestions of the first sub-agents that are active and behind no flag: the first sentence of each
    description."""
    sub_agents = {name for card in cards for name in card.sub_agents}
    suggestions: list[Suggestion] = []
    for card in cards:
        sentence = _SENTENCE.match(card.description.strip())
        if sentence and card.id in sub_agents and card.status == "active" and card.flag is None:
            suggestions.append(Suggestion(label=heading(card.label), question=sentence[1]))
    return tuple(suggestions[:_MOST_SUGGESTIONS])
