"""What every page stands in: the process' one host, who is looking, and how trouble is told."""

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.context import Principal
from kit.core.errors import KitError
from kit.settings import Settings

if TYPE_CHECKING:
    from kit.ui.host import Host

STYLE = "<style>.stMainBlockContainer { padding-top: 3.5rem; }</style>"


@st.cache_resource(show_spinner=False, hash_funcs={Settings: Settings.model_dump_json}, on_release=lambda host: host.close())
def open_host(settings: Settings) -> "Host":
    """The process' one host for these settings."""
    from kit.ui.host import Host  # brings the whole kit: the first screen does not wait for it

    return Host(settings)


def visitor(host: "Host") -> Principal:
    """Who is looking: every page shows this principal's sessions and traces and nobody else's."""
    return host.kit.session("").principal


def new_session() -> None:
    """Gives the page an address of its own, with nothing asked yet."""
    st.query_params["session"] = st.session_state["fresh"] = uuid.uuid4().hex


@contextmanager
def told(place: DeltaGenerator) -> Generator[None]:
    """Says in `place` what went wrong and what to do, in a sentence instead of a traceback."""
    try:
        yield
    except KitError as error:
        place.error(str(error).replace("$", r"\$"), icon=":material/error:")
    except OSError as error:
        place.error(f"{error.strerror or error}: {error.filename or 'the kit could not be opened'}", icon=":material/error:")
