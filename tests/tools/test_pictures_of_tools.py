"""A picture that a tool returns: shown to a model that takes pictures, named to any other, kept nowhere."""

import base64
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from PIL import Image

from case_pictures import draw_picture
from kit import open_kit
from kit.compose.deck import Deck, load_deck
from kit.core.bodies.call import ToolEnded
from kit.core.model import ModelSpec
from kit.models.openai import chat_model
from kit.models.scripted import Line, ScriptedModel
from kit.settings import Settings
from tests.cli.test_cli import run
from tests.kits import ALICE, OFFLINE, bodies, content_of, desk_deck, desk_models, repeats
from tests.loopback_openai import Call, Say, loopback
from tests.mcp_servers import SERVER, write_deck
from tests.tools.test_results import tool_of

RECEIPT = draw_picture("receipt").data
URI = f"data:image/png;base64,{base64.b64encode(RECEIPT).decode()}"
WORDS = "a picture, PNG, "
UNSEEN = ", not shown to the model"


@tool
def look() -> list[dict[str, Any]]:
    """Looks, as a tool of LangChain's that returns blocks of content."""
    return [
        {"type": "text", "text": "The receipt."},
        {"type": "image_url", "image_url": {"url": URI}},
    ]


FORMS = {
    "bytes": RECEIPT,
    "an image of Pillow": Image.open(BytesIO(RECEIPT)),
    "a data URI": URI,
}


def sent_pictures(request: dict[str, Any]) -> list[str]:
    """The pictures in the messages of a request, as data URIs."""
    urls: list[str] = []
    for message in request["messages"]:
        if isinstance(message["content"], list):
            blocks = message["content"]
            urls += [block["image_url"]["url"] for block in blocks if block["type"] == "image_url"]
            assert message["role"] == "user", "endpoints take pictures from users alone"
    return urls


async def ask_desk(
    deck: Deck, call: Call, settings: Settings = OFFLINE
) -> tuple[ToolEnded, list[dict[str, Any]]]:
    """What became of a call that a model behind an endpoint makes, and the requests that it was sent."""
    with loopback() as server:
        server.plays(Say([], [call]), Say(["It is a receipt."]))
        models = desk_models("Unused.")
        spec = ModelSpec(key="m", provider="openai")
        models["desk"] = chat_model(spec, api_key="k", base_url=server.url)
        async with open_kit(settings, deck=deck, models=models) as kit:
            reply = await kit.ask("Please look.", ALICE)
        assert "It is a receipt." in reply.text
        requests = server.requests
    [ended] = bodies(reply, ToolEnded)
    assert ended.error is None
    return ended, requests


@pytest.mark.realtime
@pytest.mark.parametrize("form", FORMS)
async def test_a_model_that_takes_pictures_is_shown_what_a_tool_returned(form: str, tmp_path: Path):
    deck = desk_deck([tool_of(FORMS[form], is_async=form == "bytes")], "find")
    settings = OFFLINE.with_(store=str(tmp_path / "kit.db"))
    ended, (first, second) = await ask_desk(deck, Call("find", {}), settings)
    assert sent_pictures(first) == []
    (picture,) = sent_pictures(second)
    shown = Image.open(BytesIO(base64.b64decode(picture.partition(",")[2])))
    assert shown.size == Image.open(BytesIO(RECEIPT)).size
    assert ended.result.startswith(WORDS)
    assert base64.b64encode(RECEIPT).decode()[:60] not in content_of(tmp_path)


@pytest.mark.realtime
async def test_a_tool_of_langchain_that_returns_blocks_shows_text_and_picture():
    ended, requests = await ask_desk(desk_deck([look], "look"), Call("look", {}))
    assert sent_pictures(requests[1]) == [URI]
    assert ended.result.startswith(f"The receipt.\n{WORDS}")


async def test_a_model_that_takes_none_reads_what_it_is_and_that_it_is_not_shown():
    desk = ScriptedModel(Line("Let me look.", calls=[("find", {})]), repeats)
    spec = ModelSpec(key="blind", provider="openai", pictures=False)
    deck = desk_deck([tool_of(RECEIPT, is_async=True)], "find")
    models: Any = {"lead": desk_models("Unused.")["lead"], "desk": (desk, spec)}
    async with open_kit(OFFLINE, deck=deck, models=models) as kit:
        reply = await kit.ask("Please find it.", ALICE)
    [read] = [message for message in desk.seen[-1] if message.type == "tool"]
    assert str(read.content).startswith(WORDS) and str(read.content).endswith(UNSEEN)
    assert all(isinstance(message.content, str) for message in desk.seen[-1])
    assert reply.status == "ok"


@pytest.fixture(params=[True, False])
def picture_server(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, bool]:
    """A deck whose server answers with a picture, or with what only says that it is one; it was accepted."""
    data = URI.partition(",")[2] if request.param else "bm90IG9uZQ=="
    text = '"type": "text", "text": "There are 4 packs of tea on shelf 7."'
    image = f'"type": "image", "mimeType": "image/png", "data": "{data}"'
    folder = write_deck(tmp_path, SERVER.replace(text, image))
    assert run("check", str(folder), "--trust", PATH=os.environ["PATH"]).returncode == 0
    return folder, request.param


@pytest.mark.realtime
async def test_a_picture_of_an_mcp_server_is_shown_and_what_is_none_is_named(
    picture_server: tuple[Path, bool],
):
    folder, is_picture = picture_server
    ended, requests = await ask_desk(load_deck(folder), Call("shop__stock", {"product": "tea"}))
    assert sent_pictures(requests[1]) == ([URI] if is_picture else [])
    assert ended.result.startswith(WORDS if is_picture else "(image, not shown)")
