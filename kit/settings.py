"""The only reader of the environment: one frozen Settings, each field with its variable."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kit.core.errors import SettingsError
from kit.core.value import Value

HOME = Path(__file__).resolve().parent.parent
"""Where cards/ and data/ lie: the checkout."""


class Settings(Value):
    """Everything that differs between two machines. `Settings.read()` takes it from the environment."""

    deck: Path = HOME / "cards" / "consumer"
    """KIT_DECK: folder of the deck."""
    data: Path = HOME / "data" / "world"
    """KIT_DATA: folder of the embedded world."""
    store: str = str(HOME / ".kit" / "kit.db")
    """KIT_STORE: file of sessions and traces; `:memory:` keeps nothing."""
    environment: str = "default"
    """KIT_ENV: which cards/settings/<name>.yaml is laid over default.yaml."""
    model: str | None = None
    """KIT_MODEL: one key of models.yaml for every agent; unset, the offline stand-in unless a key or URL is set."""
    openai_api_key: str | None = None
    """OPENAI_API_KEY."""
    openai_base_url: str | None = None
    """OPENAI_BASE_URL: any OpenAI-compatible endpoint."""
    upstream_url: str | None = None
    """KIT_UPSTREAM_URL: the services of `python -m kit upstream`; unset, they run in-process."""
    envelope_key: str | None = None
    """KIT_ENVELOPE_KEY: the context service signs with it and the tools refuse what is not so signed; unset, neither."""
    pace: float = 1.0
    """KIT_PACE: how slowly the embedded services and the stand-in work; 0 is at once."""
    today: str | None = None
    """KIT_TODAY: the date prompts carry (2026-11-01); unset, today's. A recording needs it fixed."""
    opik_url: str | None = None
    """OPIK_URL_OVERRIDE."""
    opik_api_key: str | None = None
    """OPIK_API_KEY."""
    opik_workspace: str | None = None
    """OPIK_WORKSPACE."""
    opik_project: str = "dispatch-kit"
    """OPIK_PROJECT_NAME."""
    otlp_endpoint: str | None = None
    """OTEL_EXPORTER_OTLP_ENDPOINT: where spans go; unset, nowhere."""
    tenant: str = "acme"
    """KIT_TENANT: who the command line and the app speak for."""
    user: str = "u-001"
    """KIT_USER."""
    location: str | None = "Rivermont"
    """KIT_LOCATION."""

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Settings from the environment; an empty variable counts as unset.

        Raises SettingsError naming the variable that cannot be used.
        """
        values: dict[str, Any] = {}
        source = os.environ if environ is None else environ
        for field, variable in _VARIABLES.items():
            if source.get(variable):
                values[field] = source[variable]
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0])
            raise SettingsError(f"{_VARIABLES[field]}={values[field]!r} cannot be used: {first['msg'].lower()}") from error

    @property
    def has_model(self) -> bool:
        """Whether a real model can be reached."""
        return bool(self.openai_api_key or self.openai_base_url)

    @property
    def has_opik(self) -> bool:
        return bool(self.opik_url or self.opik_api_key)

    @property
    def grids(self) -> Path:
        """Where grids leave their results: a folder each, beside the store."""
        return (HOME / ".kit" if self.store == ":memory:" else Path(self.store).parent) / "grids"

    def with_(self, **changes: Any) -> "Settings":
        """The same settings, some changed."""
        return Settings(**{**self.model_dump(), **changes})


_VARIABLES: Mapping[str, str] = {
    "deck": "KIT_DECK",
    "data": "KIT_DATA",
    "store": "KIT_STORE",
    "environment": "KIT_ENV",
    "model": "KIT_MODEL",
    "openai_api_key": "OPENAI_API_KEY",
    "openai_base_url": "OPENAI_BASE_URL",
    "upstream_url": "KIT_UPSTREAM_URL",
    "envelope_key": "KIT_ENVELOPE_KEY",
    "pace": "KIT_PACE",
    "today": "KIT_TODAY",
    "opik_url": "OPIK_URL_OVERRIDE",
    "opik_api_key": "OPIK_API_KEY",
    "opik_workspace": "OPIK_WORKSPACE",
    "opik_project": "OPIK_PROJECT_NAME",
    "otlp_endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT",
    "tenant": "KIT_TENANT",
    "user": "KIT_USER",
    "location": "KIT_LOCATION",
}
