"""The code that a deck's `page:` section refers to: who can be chosen, and what draws the components."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import cast

from kit.compose.page import PageSettings, Person, Renderer
from kit.core.context import Principal
from kit.core.errors import SettingsError
from kit.settings import Settings


def load_people(page: PageSettings, settings: Settings) -> Mapping[Principal, Person]:
    """Returns whom the page can ask as; nobody of the embedded data when the services are elsewhere.

    Raises SettingsError for a reference to something else, and what its function raises.
    """
    people: Iterable[Person]
    if not isinstance(page.people, str):
        people = page.people
    elif settings.upstream_url:
        people = ()
    else:
        listing = load_reference(page.people, settings.deck)
        if not callable(listing):
            raise SettingsError(f"people {page.people!r} is no function; write one that takes the data folder")
        people = cast("Iterable[Person]", listing(settings.data))
    return {Principal(tenant_id=person.tenant_id, user_id=person.user_id): person for person in people}


def load_renderers(page: PageSettings, folder: Path) -> Mapping[str, Renderer]:
    """Returns what draws the components of each type. Raises SettingsError for a reference to something else."""
    renderers = load_reference(page.renderers, folder) if page.renderers else {}
    if not isinstance(renderers, Mapping):
        raise SettingsError(f"renderers {page.renderers!r} is no mapping; write one of component types to functions")
    return cast("Mapping[str, Renderer]", renderers)


def load_reference(reference: str, folder: Path) -> object:
    """Returns what `package.module:NAME` names. Raises SettingsError where there is no such thing."""
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"{reference!r} in the page of {folder.name!r} cannot be loaded: {error}") from error
