"""Any chat model by a string, by code, or by a URL with its own key and parameters; and a key goes where it belongs."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.language_models import FakeListChatModel

from kit.bench.grid.cell import cells
from kit.bench.grid.grid_file import read_grid
from kit.compose.models import build_model, load_models
from kit.compose.registry import Registry
from kit.core.errors import BindError, CodeError, DeckError, SettingsError
from kit.core.model import ModelParams, ModelSpec, RateLimits
from kit.models.access import NO_KEY, ModelAccess
from kit.models.json_routing import JsonRouting
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.settings import HOME
from kit.wire import open_kit
from tests.cli.test_cli import run
from tests.kits import OFFLINE, small_deck
from tests.loopback_openai import Loopback, Say

KEY, OTHER = "sk-own-endpoint-4711", "sk-the-users-openai-key"


def access(**variables: str) -> ModelAccess:
    return ModelAccess(api_key=OTHER, variables={"OPENAI_API_KEY": OTHER, **variables})


def spec(**fields: Any) -> ModelSpec:
    return ModelSpec.model_validate({"key": "mine", "provider": "openai", **fields})


def models_file(folder: Path, text: str) -> Path:
    (folder / "models.yaml").write_text(text)
    return folder / "models.yaml"


def strangers_deck(folder: Path, models: str) -> Path:
    """A deck of one card on the model `own`."""
    (folder / "desk").mkdir()
    (folder / "blocks").mkdir()
    (folder / "desk" / "deck.yaml").write_text("orchestrator: lead\nrequired_blocks: []\n")
    (folder / "desk" / "lead.yaml").write_text("id: lead\ndescription: Leads.\nmodel: own\n")
    models_file(folder, models)
    return folder / "desk"


# By a string, by code, by a URL


LOOK = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
}
PARAMS = {"temperature": 0.5, "top_p": 0.9, "seed": 3, "extra_body": {"top_k": 20}}
BY_STRING = {"provider": "langchain", "model": "openai:small"}


@pytest.mark.req("K-2")
@pytest.mark.realtime
@pytest.mark.parametrize("routing", ["native", "json_schema"])
@pytest.mark.parametrize("provider", [{}, BY_STRING], ids=["a URL", "a string of LangChain"])
async def test_an_endpoint_has_its_own_key_and_params(
    server: Loopback, routing: str, provider: dict[str, str]
):
    server.plays(Say(["fine"] if routing == "native" else ['{"say": "fine", "calls": []}']))
    place = {"base_url": server.url, "api_key_env": "MINE_API_KEY", "routing": routing}
    entry = spec(**provider, **place, params={**PARAMS, "headers": {"x-team": "lab"}})
    model = build_model(entry, access(MINE_API_KEY=KEY)).bind_tools([LOOK])
    assert (await model.ainvoke("hi")).text == "fine"
    assert server.bearers == [KEY] and server.headers[0]["x-team"] == "lab"
    [sent] = server.requests
    assert [sent[name] for name in ("temperature", "top_p", "seed", "top_k")] == [0.5, 0.9, 3, 20]
    assert ("response_format" in sent) == (routing == "json_schema")


@pytest.mark.req("K-2")
def test_code_beside_the_deck_makes_a_model_with_the_params_of_its_entry(tmp_path: Path):
    (tmp_path / "own.py").write_text(
        "from kit.models.scripted import Line, ScriptedModel\n\n\n"
        "def make(temperature=1.0):\n    return ScriptedModel(lambda _: Line(f'at {temperature}'))\n\n\n"
        "def broken():\n    raise OSError('no weights')\n\n\nnothing = dict\n"
    )
    entry = spec(
        provider="python", factory="./own.py:make", params={"temperature": 0.25}, stream=False
    )
    model = build_model(entry, folder=tmp_path)
    assert isinstance(model, ScriptedModel) and model.disable_streaming
    assert model._next([]).text == "at 0.25"
    for name, words in (
        ("broken", "raised OSError: no weights"),
        ("nothing", "gives a dict; return a LangChain chat model"),
    ):
        with pytest.raises(CodeError, match=rf"model 'mine': \./own\.py:{name} {words}"):
            build_model(spec(provider="python", factory=f"./own.py:{name}"), folder=tmp_path)


@pytest.mark.req("K-2")
@pytest.mark.realtime
async def test_an_endpoint_that_cannot_stream_is_asked_for_whole_replies(server: Loopback):
    server.plays(*[Say(["whole"])] * 2)
    for routing in ("native", "json_schema"):
        model = build_model(spec(stream=False, base_url=server.url, routing=routing), access())
        assert "".join([str(chunk.text) async for chunk in model.astream("hi")]) == "whole"
    assert not any(request.get("stream") for request in server.requests)


def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it():
    with pytest.raises(
        SettingsError,
        match="needs packages that are not here: pip install langchain langchain-anthropic",
    ):
        build_model(
            load_models(HOME / "cards" / "models.yaml")["claude-haiku-4-5"],
            access(ANTHROPIC_API_KEY=KEY),
        )


def test_a_string_that_names_no_provider_is_a_sentence():
    with pytest.raises(
        SettingsError,
        match=r"model 'mine': 'nobody:x' cannot be built: Unable to infer model provider",
    ):
        build_model(spec(provider="langchain", model="nobody:x"))


def test_checking_a_strangers_deck_says_what_it_would_call_and_send_and_does_neither(
    tmp_path: Path,
):
    own = "own: {provider: python, factory: './own.py:make'}\n"
    far = "far: {provider: openai, base_url: 'http://far.example/v1', api_key_env: FAR_API_KEY}\n"
    folder = strangers_deck(tmp_path, own + far)
    (folder / "own.py").write_text("raise SystemExit('the code ran')\n")
    result = run("check", str(folder))
    assert result.returncode == 0, result.stderr
    assert "model own calls ./own.py:make" in result.stdout
    assert "model far sends FAR_API_KEY to http://far.example/v1" in result.stdout


@pytest.mark.req("K-2")
@pytest.mark.realtime
@pytest.mark.parametrize("kind", ["string", "path"])
def test_a_deck_that_names_its_own_model_is_answered_by_it_without_any_setting(
    tmp_path: Path, server: Loopback, kind: str
):
    server.plays(Say(["It is four."]))
    entry = {
        "string": f"provider: langchain, model: 'openai:small', base_url: '{server.url}', api_key_env: MINE_API_KEY",
        "path": "provider: python, factory: './own.py:make'",
    }[kind]
    folder = strangers_deck(tmp_path, f"own: {{{entry}}}\n")
    (folder / "own.py").write_text(
        "from kit.models.scripted import ScriptedModel\n\n\ndef make():\n    return ScriptedModel('It is four.')\n"
    )
    result = run("ask", "what is two plus two?", KIT_DECK=str(folder), MINE_API_KEY=KEY)
    assert result.returncode == 0 and "It is four." in result.stdout, result.stdout + result.stderr
    assert server.bearers == ([] if kind == "path" else [KEY])


# Keys


@pytest.mark.parametrize("provider", [{}, BY_STRING])
def test_a_deck_cannot_send_a_key_to_an_endpoint_it_does_not_belong_to(
    server: Loopback, provider: dict[str, str]
):
    entry = spec(**provider, base_url=server.url, api_key_env="OPENAI_API_KEY")
    with pytest.raises(
        SettingsError,
        match=r"OPENAI_API_KEY belongs to https://api\.openai\.com/v1 and is not sent to http://127",
    ):
        build_model(entry, access())
    far = spec(**provider, base_url=server.url, api_key_env="FAR_API_KEY")
    with pytest.raises(
        SettingsError, match=r"FAR_API_KEY belongs to https://far\.example/v1 and is not sent to"
    ):
        build_model(far, access(FAR_API_KEY=KEY, FAR_BASE_URL="https://far.example/v1"))
    with pytest.raises(SettingsError, match="model 'mine' needs a key: set FAR_API_KEY"):
        build_model(far, access())


@pytest.mark.realtime
async def test_a_langchain_model_at_an_endpoint_of_its_own_gets_no_key_that_the_deck_does_not_name(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    server.plays(Say(["fine"]))
    await build_model(spec(**BY_STRING, base_url=server.url), access()).ainvoke("hi")
    assert server.bearers == [NO_KEY]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("api_key_env: GITHUB_TOKEN", "'api_key_env': string should match pattern"),
        (
            "params: {temprature: 1}",
            "unknown field 'params.temprature': did you mean 'temperature'",
        ),
        (
            "params: {headers: {Authorization: Bearer x}}",
            "the header 'Authorization' carries a key",
        ),
        (
            "factory: ./own.py:make",
            "`provider: python` needs `factory`, and no other provider has it",
        ),
    ],
)
def test_a_fault_in_an_entry_is_reported_with_its_line(tmp_path: Path, entry: str, words: str):
    with pytest.raises(DeckError, match=r"models\.yaml:\d+: ") as caught:
        load_models(models_file(tmp_path, f"mine:\n  provider: openai\n  {entry}\n"))
    assert words in caught.value.faults[0]


# In Python


class Counted(ScriptedModel):
    """Reports cached and reasoning tokens."""

    def _usage(self, messages: Any, line: Line) -> Any:
        return {
            "input_tokens": 1000,
            "output_tokens": 100,
            "total_tokens": 1100,
            "input_token_details": {"cache_read": 400},
            "output_token_details": {"reasoning": 60},
        }


async def test_a_model_passed_in_python_carries_its_price_with_cached_and_reasoning_tokens_apart():
    assert spec(price_in=10, price_out=100).price(1000, 100, 400, 60) == 0.02
    priced = spec(price_in=10, price_out=100, price_cached=1, price_reasoning=200)
    cost = (600 * 10 + 400 * 1 + 40 * 100 + 60 * 200) / 1e6
    counted: Any = Counted
    models = (counted("Hello there."), priced)
    async with open_kit(OFFLINE, models=models, deck=small_deck([])) as kit:
        reply = await kit.ask("hello", kit.session("s"))
    assert kit.model == "mine"
    assert reply.usage.cost == pytest.approx(cost * reply.usage.model_calls)


def test_a_model_for_a_card_that_is_not_there_is_refused_with_the_nearest_name():
    with pytest.raises(
        BindError,
        match="models name 'rewrads', and the deck has no such card: did you mean 'rewards'",
    ):
        bind(small_deck(["rewards"]), {"*": ScriptedModel("x"), "rewrads": ScriptedModel("y")})


def test_what_is_no_model_and_a_model_that_takes_no_tools_are_refused_with_what_to_do():
    with pytest.raises(
        BindError, match=r"is no model: give a key of models\.yaml, or a chat model"
    ):
        bind(small_deck(["rewards"]), cast("Any", ScriptedModel))
    toolless = FakeListChatModel(responses=["Hello."])
    with pytest.raises(BindError, match=r"takes no tools.*wrap the model in JsonRouting"):
        bind(small_deck(["rewards"]), toolless)
    assert bind(small_deck(["rewards"]), JsonRouting(inner=toolless)).root


def test_a_models_own_endpoint_and_params_belong_to_the_key_of_its_cells_and_nothing_that_is_not_set_does():
    grid = read_grid(HOME / "data" / "grids" / "real.yaml")

    def key(**changes: Any) -> str:
        models = {
            name: model.model_copy(update=changes) for name, model in grid.deck.models.items()
        }
        return next(
            cells(replace(grid, deck=replace(grid.deck, models=Registry("model", models))))
        ).key

    kept = (HOME / "data" / "results" / "reference" / "real" / "results.jsonl").read_text()
    assert f'"cell": "{key()}"' in kept or f'"cell":"{key()}"' in kept
    assert key(limits=RateLimits(requests=5)) == key()
    others = [
        key(params=ModelParams(seed=1)),
        key(stream=False),
        key(base_url="http://a/v1"),
        key(price_cached=1.0),
    ]
    assert len({key(), *others}) == 5
