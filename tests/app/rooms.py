"""Rooms of kit/ui as Streamlit's own test driver opens them, over a store of the test's own."""

from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from altair import VegaLiteSchema
from altair.utils import schemapi
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from kit.core.record import TurnRecord
from kit.home import HOME
from kit.stores.sqlite import SqliteStore
from kit.ui.shared import frame
from tests.pages import unescaped

# For each page that it drives Streamlit reads about every installed package whether it brings components: half
# of what a page test took. What is installed does not change meanwhile.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


read_schemas = schemapi._FromDict


@cache
def class_of_schema() -> dict[int, list[type[schemapi.SchemaBase]]]:
    """Which class of altair is for which schema. It finds out anew for each chart, a tenth of a page test's time."""
    return read_schemas(VegaLiteSchema._default_wrapper_classes()).class_dict


class ReadSchemas(read_schemas):
    """What altair finds out once."""

    def __init__(self, wrapper_classes: object, /) -> None:
        self.class_dict = class_of_schema()


schemapi._FromDict = ReadSchemas


@contextmanager
def app_over(store: Path, monkeypatch: pytest.MonkeyPatch, **settings: object) -> Generator[None]:
    """The app's environment: the stand-in without pauses, this store, and nothing of the machine's own."""
    chosen = {"PACE": 0, "MODEL": "offline", "STORE": store, **settings}
    for name in ("KIT_DECK", "KIT_TENANT", "KIT_USER", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPIK_URL_OVERRIDE", "OPIK_API_KEY", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in chosen.items():
        monkeypatch.setenv(f"KIT_{name}", str(value))
    yield
    frame.open_host.clear()


@contextmanager
def app_of_deck(
    folder: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, Any]
) -> Generator[Path]:
    """The app over a deck of these files alone, below a folder of the test's; the deck's own folder."""
    deck = folder / "deck"
    deck.mkdir()
    (folder / "blocks").mkdir()
    (folder / "models.yaml").write_text("{}\n")
    for name, content in files.items():
        (deck / name).write_text(yaml.safe_dump(content))
    with app_over(folder / "kit.db", monkeypatch, DECK=deck):
        yield deck


def room(name: str, **address: str) -> AppTest:
    """The page of a room as app.py runs it, without its neighbours: the driver knows pages only as files."""
    code = f"from kit.ui.shared import address; from kit.ui.{name} import page; address.keep(); page.page()"
    page = AppTest.from_string(code, default_timeout=3000)
    page.query_params.update(address)
    return page


def whole_app(**address: Any) -> AppTest:
    """The app with all of its pages, at this address; it opens on the chat."""
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=3000)
    page.query_params.update(address)
    return page


def turns_in(store: Path, **by: Any) -> list[TurnRecord]:
    """The turns that a page has stored."""
    with closing(SqliteStore(store)) as kept:
        return kept.turns(**by)


def shown(page: AppTest) -> str:
    """Returns everything that is written on a page; a failure of the page fails the test."""
    assert not page.exception, page.exception
    notes = (*page.markdown, *page.caption, *page.warning, *page.info, *page.success)
    words = [str(element.value) for element in notes]
    words += [unescaped(element.value) for element in page.error]
    words += [element.proto.body for element in page.get("html")]
    return " ".join(words)


def button(page: AppTest, label: str) -> Any:
    """Returns the button of a page that is called so."""
    return next(one for one in page.button if one.label == label)
