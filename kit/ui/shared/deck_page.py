"""The code that a deck's `page:` section refers to: who can be chosen, and what draws the components."""

from collections.abc import Iterable, Mapping
from typing import cast

from kit.compose.deck import Deck
from kit.compose.page import Person, Renderer
from kit.core.context import Principal
from kit.core.errors import CodeError
from kit.settings import Settings
from kit.tools.loading import load_reference


def load_people(deck: Deck, settings: Settings) -> Mapping[Principal, Person]:
    """Returns whom the page can ask as. Raises CodeError for a reference to something else, and
    what its function raises."""
    people: Iterable[Person] | str = deck.settings.page.people
    if isinstance(people, str):
        listing = load_reference(people, deck.tools.folder)
        # A reference leads to code of the deck, which may be anything.
        if not callable(listing):
            raise CodeError(
                f"people {people!r} is no function; write one that takes the data folder and the environment"
            )
        people = cast(
            "Iterable[Person]",
            listing(settings.data, settings.environment_of(deck.settings.environment)),
        )
    persons: dict[Principal, Person] = {}
    for person in people:
        persons[Principal(tenant_id=person.tenant_id, user_id=person.user_id)] = person
    return persons


def load_renderers(deck: Deck) -> Mapping[str, Renderer]:
    """Returns what draws the components of each type. Raises CodeError for a reference to something else."""
    reference = deck.settings.page.renderers
    if reference:
        renderers = load_reference(reference, deck.tools.folder)
    else:
        renderers = {}
    if not isinstance(renderers, Mapping):
        raise CodeError(
            f"renderers {reference!r} is no mapping; write one of component types to functions"
        )
    return cast("Mapping[str, Renderer]", renderers)
