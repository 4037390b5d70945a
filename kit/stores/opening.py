"""Opens the store that a path or a URL names."""

from pathlib import Path
from typing import TYPE_CHECKING

from kit.core.errors import StoreError
from kit.core.extra import require
from kit.core.secret import is_url
from kit.stores.sqlite import SqliteStore
from kit.stores.turn_store import TurnStore

if TYPE_CHECKING:
    from kit.stores.opensearch.documents import OpenSearchDocuments


def open_store(
    place: str, retention_days: float | None = None, documents: str | None = None
) -> TurnStore:
    """The store in PostgreSQL at a URL, or in the file at a path, its folder made where it is
    missing; documents' events go after so many days, None keeps them. `documents` names the OpenSearch
    that keeps the documents; None: the store itself.

    Raises StoreError, and SettingsError where the extra `postgres` or `opensearch` is not installed.
    """
    store = _open_turns(place, retention_days)
    if documents is not None:
        try:
            store.keep_documents_in(_open_documents(documents))
        except BaseException:
            store.close()
            raise
    return store


def open_place(place: str) -> TurnStore:
    """The store at a place, or where that is an OpenSearch, one of nothing but its documents. Raises StoreError
    and SettingsError."""
    if place.startswith("opensearch+"):
        return open_store(":memory:", documents=place)
    return open_store(place)


def _open_documents(place: str) -> "OpenSearchDocuments":
    require("opensearch", "opensearchpy")
    from kit.stores.opensearch.documents import OpenSearchDocuments  # loads its client, in a second

    return OpenSearchDocuments(place)


def _open_turns(place: str, retention_days: float | None) -> TurnStore:
    if is_url(place):
        require("postgres", "psycopg")
        from kit.stores.engines.postgres import PostgresStore  # needs that extra

        return PostgresStore(place, retention_days)
    if place != ":memory:":
        folder = Path(place).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the store {place} needs {folder}, which cannot be made: {error.strerror}; set KIT_STORE"
            ) from error
    return SqliteStore(place, retention_days)
