"""Any chat model of LangChain: named by the string that `init_chat_model` takes, or made by code of the deck's."""

from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel

from kit.core.card import Tuning
from kit.core.errors import CodeError, SettingsError, describe_error
from kit.core.model import ModelSpec
from kit.models.access import NO_KEY, ModelAccess
from kit.models.json_routing import JsonRouting


def model_by_name(spec: ModelSpec, access: ModelAccess, tuning: Tuning) -> BaseChatModel:
    """Builds the model that `spec.model` names; its provider reads its own key from the
    environment.

    An endpoint of the spec's own gets the key that `api_key_env` names, or none: never the
    provider's. Raises SettingsError, with the line that installs what is missing, or with what the
    provider's package says.
    """
    endpoint, key = access.own_endpoint(spec)
    endpoint = endpoint or spec.base_url
    options: dict[str, Any] = {
        "max_tokens": tuning.max_output_tokens,
        "reasoning_effort": tuning.reasoning_effort or spec.effort,
        "base_url": endpoint,
        "api_key": key or (NO_KEY if endpoint else None),
        "disable_streaming": not spec.stream or None,
    }
    options = {
        name: value for name, value in options.items() if value is not None
    } | spec.params.options()
    try:
        from langchain.chat_models import init_chat_model

        build: Any = init_chat_model  # its types leave the model unknown
        model: BaseChatModel = build(spec.model, **options)
    except ImportError as error:
        raise SettingsError(
            f"model {spec.key!r} needs packages that are not here: {_install_line(spec.model)}"
        ) from error
    except Exception as error:
        # A border: each provider's package refuses settings in a way of its own.
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise SettingsError(
            f"model {spec.key!r}: {spec.model!r} cannot be built: {reason}"
        ) from error
    return _with_routing(spec, model)


def model_by_code(spec: ModelSpec, make: Any) -> BaseChatModel:
    """Returns what a factory makes of the spec's params, or the model that stands in its place. Raises CodeError."""
    try:
        model = make if isinstance(make, BaseChatModel) else make(**spec.params.options())
    except Exception as error:
        # The same border: a deck's code is someone else's.
        raise CodeError(
            f"model {spec.key!r}: {spec.factory} raised {describe_error(error)}"
        ) from error
    if not isinstance(model, BaseChatModel):
        raise CodeError(
            f"model {spec.key!r}: {spec.factory} gives a {type(model).__name__}; return a LangChain chat model"
        )
    if not spec.stream:
        # A copy: the deck's own code may use the model elsewhere.
        model = model.model_copy(update={"disable_streaming": True})
    return _with_routing(spec, model)


def _with_routing(spec: ModelSpec, model: BaseChatModel) -> BaseChatModel:
    if spec.routing == "native":
        return model
    return JsonRouting(inner=model, name=spec.key, disable_streaming=not spec.stream)


@cache
def missing_packages(model: str) -> str:
    """Returns the line that installs what `init_chat_model` lacks for a model; empty where nothing is missing."""
    try:
        from langchain.chat_models import init_chat_model

        build: Any = init_chat_model
        build(model)
    except ImportError:
        return _install_line(model)
    except Exception:
        # The same border: whatever else it lacks it says when it is built for use.
        return ""
    return ""


def _install_line(model: str) -> str:
    provider = model.partition(":")[0].replace("_", "-")
    return f"pip install langchain langchain-{provider}"
