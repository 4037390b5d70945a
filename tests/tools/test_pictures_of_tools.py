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
from kit.compose.deck import load_deck
from kit.core.bodies.call import ToolEnded
from kit.core.model import ModelSpec
from kit.models.openai import chat_model
from kit.models.scripted import Line, ScriptedModel
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


@pytest.mark.realtime
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("form", FORMS)
async def test_a_model_that_takes_pictures_is_shown_what_a_tool_returned(
    form: str, is_async: bool, tmp_path: Path
):
    deck = desk_deck([tool_of(FORMS[form], is_async=is_async)], "find")
    with loopback() as server:
        server.plays(Say([], [Call("find", {})]), Say(["It is a receipt."]))
        models = desk_models("Unused.")
        spec = ModelSpec(key="m", provider="openai")
        models["desk"] = chat_model(spec, api_key="k", base_url=server.url)
        settings = OFFLINE.with_(store=str(tmp_path / "kit.db"))
        async with open_kit(settings, deck=deck, models=models) as kit:
            reply = await kit.ask("Please find it.", ALICE)
        assert "It is a receipt." in reply.text
        first, second = server.requests
    assert sent_pictures(first) == []
    (picture,) = sent_pictures(second)
    shown = Image.open(BytesIO(base64.b64decode(picture.partition(",")[2])))
    assert shown.size == Image.open(BytesIO(RECEIPT)).size
    [ended] = bodies(reply, ToolEnded)
    assert ended.result.startswith(WORDS) and ended.error is None
    assert base64.b64encode(RECEIPT).decode()[:60] not in content_of(tmp_path)


@pytest.mark.realtime
async def test_a_tool_of_langchain_that_returns_blocks_shows_text_and_picture():
    with loopback() as server:
        server.plays(Say([], [Call("look", {})]), Say(["It is a receipt."]))
        models = desk_models("Unused.")
        spec = ModelSpec(key="m", provider="openai")
        models["desk"] = chat_model(spec, api_key="k", base_url=server.url)
        deck = desk_deck([look], "look")
        async with open_kit(OFFLINE, deck=deck, models=models) as kit:
            reply = await kit.ask("Please look.", ALICE)
        assert sent_pictures(server.requests[1]) == [URI]
    [ended] = bodies(reply, ToolEnded)
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
    with loopback() as server:
        server.plays(Say([], [Call("shop__stock", {"product": "tea"})]), Say(["It is a receipt."]))
        models = desk_models("Unused.")
        spec = ModelSpec(key="m", provider="openai")
        models["desk"] = chat_model(spec, api_key="k", base_url=server.url)
        async with open_kit(OFFLINE, deck=load_deck(folder), models=models) as kit:
            reply = await kit.ask("Please look.", ALICE)
        assert sent_pictures(server.requests[1]) == ([URI] if is_picture else [])
    [ended] = bodies(reply, ToolEnded)
    words = WORDS if is_picture else "(image, not shown)"
    assert ended.result.startswith(words) and ended.error is None
