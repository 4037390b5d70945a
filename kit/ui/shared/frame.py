"""What every page needs: the process' host, its style, links to other pages, and errors in words."""

import gc
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.read import read_outline
from kit.core.errors import CodeError, KitError
from kit.settings import Settings
from kit.tools.loading import load_reference
from kit.ui.shared import address
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import literal

if TYPE_CHECKING:
    from kit.ui.shared.host import Host

__all__ = ["visitor"]

STYLES = (
    Path(__file__).with_name("style.css"),
    Path(__file__).parents[1] / "canvas" / "canvas.css",
)
NEEDS_STORE = (
    "This page reads everything that is stored. A service answers this app (`KIT_SERVICE_URL`), and its store is "
    "not open to it: start the app without that variable where the store is."
)
DETAIL = 20_000
"""Characters of an error in its place: a deck tells of all its faults at once."""


def _key(settings: Settings) -> str:
    # Libraries set variables while the app runs: they open no second kit.
    return settings.model_dump_json(exclude={"variables"})


@st.cache_resource(
    show_spinner=False, hash_funcs={Settings: _key}, on_release=lambda host: host.close()
)
def open_host(settings: Settings) -> "Host":
    """Returns the process' one host for these settings."""
    # It brings the whole kit: the first screen does not wait for it.
    if settings.service_url is not None:
        from kit.ui.shared.remote_host import RemoteHost

        return RemoteHost(settings)
    from kit.ui.shared.host import Host

    return Host(settings)


@st.cache_resource(show_spinner=False)
def freeze_modules(modules: int) -> None:
    """Takes all objects there are out of garbage collection, once for each number of modules
    loaded.

    Streamlit makes a full round after every run of a page: 0.15 s of a core with the kit in it,
    while every other thread waits.
    """
    gc.freeze()


def deck_pages() -> Mapping[str, Callable[[], None]]:
    """Returns the pages that the deck brings, by name. The code of one is imported when it is drawn."""
    try:
        folder = Settings.read().deck
    # The page that is open says what is wrong with the settings.
    except KitError:
        return {}
    pages: dict[str, Callable[[], None]] = {}
    for name, reference in read_outline(folder).pages.items():
        pages[name] = partial(_draw_deck_page, reference, folder)
    return pages


def _draw_deck_page(reference: str, folder: Path) -> None:
    with report_errors(st.empty()):
        page = load_reference(reference, folder)
        if not callable(page):
            raise CodeError(f"page {reference!r} is no function; write one without parameters")
        page()


def draw_style() -> None:
    """Draws what every page begins with: its style, and the colour scheme of the whole document,
    menus and dialogs too."""
    scheme = f":root {{ color-scheme: {st.context.theme.type or 'light dark'} }}"
    rules = "\n".join(style.read_text() for style in STYLES)
    st.html(f"<style>{scheme}\n{rules}</style>")


def draw_link(page: str, label: str, icon: str | None = None, **query: str) -> None:
    """Draws a link to another page of the app, for the same visitor, with that page's icon or another one; nothing
    where a page is served by itself."""
    target = st.session_state.get("pages", {}).get(page)
    if target is None:
        return
    # Without a query the address of the visitor is kept by itself (address.keep).
    if query:
        query |= address.of_visitor()
    st.page_link(target, label=label, icon=icon, query_params=query)


def open_page(page: str, **query: str) -> None:
    """Leaves for another page of the app, for the same visitor; does nothing where a page is served by itself."""
    target = st.session_state.get("pages", {}).get(page)
    if target is not None:
        st.switch_page(target, query_params={**query, **address.of_visitor()})


@contextmanager
def report_errors(container: DeltaGenerator) -> Generator[None]:
    """Draws an error of the block in `place`, as a sentence that says what to do."""
    try:
        yield
    except KitError as error:
        container.error(literal(str(error), DETAIL), icon=":material/error:")
    except OSError as error:
        sentence = f"{error.strerror or error}: {error.filename or 'the kit could not be opened'}"
        container.error(literal(sentence), icon=":material/error:")


def with_host(draw: "Callable[[Host, DeltaGenerator], None]") -> Callable[[], None]:
    """Returns a page that `draw` draws from the process' host; the place at its top also says why
    it could not be drawn."""

    def page() -> None:
        top = st.empty()
        with report_errors(top):
            draw(open_host(Settings.read()), top)

    return page


def with_store(draw: "Callable[[Host, DeltaGenerator], None]") -> Callable[[], None]:
    """Returns a page like `with_host`, of what is stored: it needs the store, which a service does not give away."""

    def draw_stored(host: "Host", top: DeltaGenerator) -> None:
        if host.is_remote:
            top.info(NEEDS_STORE, icon=":material/database:")
        else:
            draw(host, top)

    return with_host(draw_stored)
