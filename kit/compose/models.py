"""models.yaml as values, and a chat model from one of them."""

import reprlib
from pathlib import Path
from typing import TYPE_CHECKING

from kit.compose.registry import Registry
from kit.compose.yaml_source import Faults, Source, build, parse_file
from kit.core.card import PlanExample, Tuning
from kit.core.errors import BindError, DeckError, nearest
from kit.core.extra import ROUTER, require
from kit.core.model import OFFLINE, ModelSpec
from kit.models.access import NO_ACCESS, ModelAccess
from kit.tools.loading import load_reference

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def load_models(path: str | Path) -> Registry[ModelSpec]:
    """Model specs by key from a models.yaml; `offline` is always among them.

    Raises DeckError with every fault of the file, each with its line.
    """
    faults = Faults()
    source = parse_file(Path(path), faults)
    specs = read_models(source, faults) if source else {}
    if faults:
        raise DeckError(f"{path} cannot be used:", faults)
    return Registry("model", {OFFLINE.key: OFFLINE, **specs})


def read_models(source: Source, faults: Faults) -> dict[str, ModelSpec]:
    """The specs of a parsed models.yaml that are sound; faults for the others."""
    specs: dict[str, ModelSpec] = {}
    for key in source.value:
        spec = build(ModelSpec, source, faults, key, extra={"key": str(key)})
        if spec:
            specs[spec.key] = spec
    keys = {OFFLINE.key, *(str(key) for key in source.value)}
    for spec in specs.values():
        if spec.fallback is not None and spec.fallback not in keys:
            faults.add(
                source.at(spec.key, "fallback"),
                f"unknown model {spec.fallback!r}: {nearest(spec.fallback, keys)}",
            )
    return specs


def build_model(
    spec: ModelSpec,
    access: ModelAccess = NO_ACCESS,
    tuning: Tuning | None = None,
    folder: Path = Path(),
    plan_examples: tuple[PlanExample, ...] = (),
) -> "BaseChatModel":
    """The chat model a spec describes; `tuning` is a card's, `folder` and `plan_examples` the deck's.
    Nothing is sent before its first call.

    Raises SettingsError where a key, an endpoint or a package is missing, CodeError where a factory cannot be used.
    """
    match spec.provider:
        case "offline":
            from kit.models.offline import OfflineModel

            if spec.embedder == "minilm":
                require(*ROUTER)
            model = OfflineModel(plan_examples=plan_examples, embedder=spec.embedder)
            return model.paced(access.pace)
        case "simulated":
            from kit.models.simulated import SimulatedModel

            assert spec.law is not None, "a simulated spec has a law"
            return SimulatedModel(name=spec.key, law=spec.law, seed=spec.seed)
        # Each branch imports its own package: a provider's takes up to a second.
        case "openai":
            from kit.models.openai import chat_model

            url, key = access.own_endpoint(spec)
            if key is None:
                url = access.base_url
                key = access.api_key
            return chat_model(spec, api_key=key, base_url=url, tuning=tuning)
        case "langchain":
            from kit.models.langchain import model_by_name

            return model_by_name(spec, access, tuning or Tuning())
        case "python":
            from kit.models.langchain import model_by_code

            return model_by_code(spec, load_reference(spec.factory, folder))


def spec_of_model(model: object) -> ModelSpec:
    """What is known of a chat model that was passed in: its own word, else its name and class.
    Raises BindError for no model."""
    from langchain_core.language_models import BaseChatModel

    spec = getattr(model, "spec", None)
    if isinstance(spec, ModelSpec):
        return spec
    if not isinstance(model, BaseChatModel):
        raise BindError(
            f"{reprlib.repr(model)} is no model: give a key of models.yaml, or a chat model of LangChain"
        )
    key = model.name or getattr(model, "model_name", None) or model._llm_type  # type: ignore[reportPrivateUsage]
    code = f"{type(model).__module__}:{type(model).__name__}"
    return ModelSpec(key=str(key), provider="python", factory=code, note="a chat model passed in")


def check_orchestrator(spec: ModelSpec) -> None:
    """Refuses a model that cannot ask several sub-agents in one reply (decisions 23).

    Raises BindError unless it makes concurrent tool calls itself, or routes by an answer bound to a JSON schema.
    """
    if not spec.concurrent_tool_calls and spec.routing != "json_schema":
        raise BindError(
            f"model {spec.key!r} cannot orchestrate: it makes one tool call at a time. "
            "Give it `routing: json_schema` in models.yaml, or choose another model for the orchestrator"
        )
