"""What building a model needs beside its spec, and which key goes to which endpoint: the
environment says so, never a deck."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kit.core.errors import SettingsError
from kit.core.model import ModelSpec

OPENAI = "https://api.openai.com/v1"
NO_KEY = "no-key"
"""Sent where no key is known: local servers ask for none, but clients insist on one."""
_HOMES = {
    "OPENAI": OPENAI,
    "ANTHROPIC": "https://api.anthropic.com",
    "OPIK": "https://www.comet.com/opik/api",
}
"""Where a well-known key belongs while no `..._BASE_URL` names another place."""


@dataclass(frozen=True)
class ModelAccess:
    """What building a model needs beside its spec; comes from the settings."""

    api_key: str | None = field(default=None, repr=False)
    """Belongs to `base_url`, or to OpenAI where that is None, and is sent nowhere else."""
    base_url: str | None = None
    pace: float = 1.0
    """How slowly the offline stand-in speaks; 0 is at once."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What else of the settings no event may hold."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The environment: keys that specs name in `api_key_env`."""
    langsmith: bool = False
    """LangSmith may hear of model calls where the environment asks for its tracing."""

    def own_endpoint(self, spec: ModelSpec) -> tuple[str | None, str | None]:
        """Where requests go under the key that a spec names in `api_key_env`, and the key:
        X_API_KEY belongs to X_BASE_URL.

        None for both where the spec names none. Raises SettingsError for a variable that is not set, and for a key that
        belongs elsewhere.
        """
        name = spec.api_key_env
        if name is None:
            return None, None
        # The settings may have them from a file, and not from the environment.
        variables = dict(self.variables)
        if self.base_url:
            variables["OPENAI_BASE_URL"] = self.base_url
        if self.api_key:
            variables["OPENAI_API_KEY"] = self.api_key
        home = home_of(name, variables)
        if home and spec.base_url and not same_url(home, spec.base_url):
            raise SettingsError(
                f"model {spec.key!r}: {name} belongs to {home} and is not sent to "
                f"{spec.base_url}; put the key of that endpoint "
                f"into another variable and name that in `api_key_env`, or set {name.removesuffix('_API_KEY')}_BASE_URL"
            )
        if not variables.get(name):
            raise SettingsError(f"model {spec.key!r} needs a key: set {name}")
        return spec.base_url or home, variables[name]

    def moved_endpoint(self, spec: ModelSpec) -> str | None:
        """Where the environment sends a spec's requests; None where the spec itself says so, or nobody moves them.

        Raises SettingsError as `own_endpoint` does.
        """
        if spec.provider not in ("openai", "langchain"):
            return None
        url = None
        if spec.api_key_env:
            url = self.own_endpoint(spec)[0]
        elif spec.provider == "openai":
            url = self.base_url
        if spec.base_url or url is None or any(same_url(url, home) for home in _HOMES.values()):
            return None
        return url.rstrip("/")


NO_ACCESS = ModelAccess()
"""Neither a key nor an endpoint."""


def home_of(name: str, variables: Mapping[str, str]) -> str | None:
    """Where the key in an environment variable belongs; None where nothing says so (decisions 43)."""
    owner = name.removesuffix("_API_KEY")
    return variables.get(f"{owner}_BASE_URL") or _HOMES.get(owner)


def same_url(first: str, second: str) -> bool:
    """Whether two URLs are the same but for a slash at the end."""
    return first.rstrip("/") == second.rstrip("/")
