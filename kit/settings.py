"""The only reader of the environment: one frozen Settings, each field with its variable."""

import datetime
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from kit.core.errors import SettingsError
from kit.core.secret import is_url, secret_values, url_passwords, without_password
from kit.core.value import Value
from kit.home import HOME, IS_CHECKOUT, find_deck


def own_project() -> Path | None:
    """The folder worked in: the working folder or the nearest one above it that holds
    deck/deck.yaml, as `kit new` makes it."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "deck" / "deck.yaml").is_file():
            return folder
    return None


def own_cases() -> Path:
    """Labelled dialogues: cases.jsonl of the project worked in, else the shipped switches of the consumer deck."""
    project = own_project()
    if project:
        return project / "cases.jsonl"
    return HOME / "data" / "cases" / "switches.jsonl"


def _deck() -> Path:
    project = own_project()
    if project:
        return project / "deck"
    return HOME / "cards" / "consumer"


def _data() -> Path:
    project = own_project()
    if project:
        return project / "data"
    return HOME / "data" / "world"


def _state() -> Path:
    """The folder for what is written: in the project, else in the checkout, else in the working folder."""
    return (own_project() or (HOME if IS_CHECKOUT else Path.cwd())) / ".kit"


class Settings(Value):
    """Everything that differs between two machines. `Settings.read()` takes it from the environment."""

    deck: Annotated[Path, AfterValidator(find_deck)] = Field(default_factory=_deck)
    """KIT_DECK: folder of the deck, here or a shipped one; unset, that of the project worked in,
    else the consumer deck."""
    data: Path = Field(default_factory=_data)
    """KIT_DATA: folder of the data that a deck's tools read; unset, data/ of the project, else the embedded world."""
    store: str = Field(default_factory=lambda: str(_state() / "kit.db"), repr=False)
    """KIT_STORE: file of sessions and traces, or the URL of a PostgreSQL database; `:memory:` keeps nothing."""
    documents: Annotated[str, Field(pattern=r"^opensearch\+https?://")] | None = Field(
        default=None, repr=False
    )
    """KIT_DOCUMENTS: the OpenSearch that keeps the documents of plans, such as
    `opensearch+http://127.0.0.1:9200` (docs/stores.md); unset, they are in the store."""
    retention_days: Annotated[float, Field(gt=0)] | None = None
    """KIT_RETENTION_DAYS: the events of plans and their tools, and the outputs of their steps, go after so many
    days; unset, they stay. Turns go by no age: `kit data forget` removes those of a user."""
    environment: str = "default"
    """KIT_ENV: which cards/settings/<name>.yaml is laid over default.yaml."""
    model: str | None = None
    """KIT_MODEL: one key of models.yaml for every agent; unset, the offline stand-in unless a key or URL is set."""
    openai_api_key: str | None = Field(default=None, repr=False)
    """OPENAI_API_KEY."""
    openai_base_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    """OPENAI_BASE_URL: any OpenAI-compatible endpoint."""
    pace: float = 1.0
    """KIT_PACE: how slowly the embedded services and the stand-in work; 0 is at once."""
    today: (
        Annotated[str, AfterValidator(lambda text: datetime.date.fromisoformat(text).isoformat())]
        | None
    ) = None
    """KIT_TODAY: the date of prompts and embedded services (2026-11-01); unset, the deck's own, else this machine's."""
    opik_url: str | None = None
    """OPIK_URL_OVERRIDE."""
    opik_api_key: str | None = Field(default=None, repr=False)
    """OPIK_API_KEY."""
    opik_workspace: str | None = None
    """OPIK_WORKSPACE."""
    opik_project: str = "subagent-kit"
    """OPIK_PROJECT_NAME."""
    skill_service_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    """SKILL_SERVICE_URL: the skill service of plans, called with SKILL_SERVICE_KEY or the key of a
    request; unset, the deck's."""
    service_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    """KIT_SERVICE_URL: a running `kit serve`, which `kit ask`, the chat and the page Plans then have their
    turns from; KIT_TENANT and KIT_USER say who asks. Unset, turns run in this process."""
    embedder: str | None = None
    """KIT_EMBEDDER: a model of the endpoint at OPENAI_BASE_URL, such as `text-embedding-3-small`, by whose vectors
    memories are found; it is sent what steps of plans return. Unset, word vectors of this machine."""
    redis: Annotated[str, Field(pattern=r"^rediss?://")] | None = Field(default=None, repr=False)
    """KIT_REDIS: the Redis over which several processes share plans, live events and stops (docs/deploy.md);
    unset, one process does all."""
    seal_key: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{64}$")] | None = Field(
        default=None, repr=False
    )
    """KIT_SEAL_KEY: 64 hexadecimal digits, under which the key of a request waits in Redis for a worker."""
    operator_key: str | None = Field(default=None, repr=False)
    """KIT_OPERATOR_KEY: what a caller of the API has to know to write the persona of a whole tenant
    (docs/api.md); unset, nobody writes one over the API."""
    alert_webhook: Annotated[str, Field(pattern=r"^https?://")] | None = Field(
        default=None, repr=False
    )
    """KIT_ALERT_WEBHOOK: where `kit monitor` posts alerts that begin and end (docs/monitoring.md)."""
    alert_key: str | None = Field(default=None, repr=False)
    """KIT_ALERT_KEY: the secret that signs them."""
    langsmith: bool = False
    """KIT_LANGSMITH: 1 lets LangSmith hear of the model calls of turns where LANGSMITH_TRACING asks for
    that; unset, it hears of none, whatever else the environment says."""
    otlp_endpoint: str | None = None
    """OTEL_EXPORTER_OTLP_ENDPOINT: where spans go; unset, nowhere."""
    otlp_service: str = "subagent-kit"
    """OTEL_SERVICE_NAME: what the collector calls this process."""
    turn_lines: bool = False
    """KIT_TURN_LINES: 1 writes a line of JSON on standard output for each turn that ended."""
    tenant: str | None = None
    """KIT_TENANT: who the command line and the app speak for; unset, the visitor that the deck names."""
    user: str | None = None
    """KIT_USER."""
    visitor: Annotated[str, Field(pattern=r"^(demo|oidc|header:[A-Za-z0-9-]+)$")] = "demo"
    """KIT_VISITOR: who the app's visitors are. `demo`: everybody is the one above, and may pass for
    any of the deck's people; `oidc`: whom Streamlit signs in; `header:NAME`: whom the signed token
    in that header of a proxy names (docs/deploy.md)."""
    visitor_key: str | None = Field(default=None, repr=False)
    """KIT_VISITOR_KEY: what that token is verified with: a secret, or the path of a JWKS or of a
    public key as PEM."""
    visitor_audience: str | None = None
    """KIT_VISITOR_AUDIENCE: whom that token has to be meant for; unset, anybody."""
    visitor_claim: str = "sub"
    """KIT_VISITOR_CLAIM: the claim that holds the id of the user, such as `email`."""
    tenant_claim: str | None = None
    """KIT_TENANT_CLAIM: the claim that holds the id of the tenant; unset, all are of one tenant."""
    operator_claim: Annotated[str, Field(pattern=r"^[^=]+=.+$")] | None = None
    """KIT_OPERATOR_CLAIM: the claim and the value that an operator has, such as `groups=kit-operators`;
    unset, nobody is one outside the demo."""
    visitor_turns_at_once: Annotated[int, Field(gt=0)] | None = None
    """KIT_VISITOR_TURNS_AT_ONCE: turns of one visitor that may run; unset, 8 outside the demo."""
    visitor_turns_a_minute: Annotated[int, Field(gt=0)] | None = None
    """KIT_VISITOR_TURNS_A_MINUTE: turns that one visitor may begin; unset, 60 outside the demo."""
    visitor_dollars_a_day: Annotated[float, Field(gt=0)] | None = None
    """KIT_VISITOR_DOLLARS_A_DAY: what the turns of one visitor may cost in a day (UTC); unset, anything."""
    location: str | None = None
    """KIT_LOCATION."""
    locale: str | None = None
    """KIT_LOCALE, such as `es-MX`: the language of the fixed sentences; unset, that of the visitor
    whom the deck names."""
    variables: Mapping[str, str] = Field(default={}, repr=False)
    """The whole environment; a deck's tools see of it what deck.yaml lists under `environment:`."""
    secret_names: frozenset[str] = frozenset()
    """Further variables whose values are secret: what a deck's MCP servers are told."""

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Settings from the environment; an empty variable counts as unset.

        Raises SettingsError naming the variable that cannot be used.
        """
        if environ is None:
            source = os.environ
        else:
            source = environ
        values: dict[str, Any] = {"variables": dict(source)}
        for field, variable in _VARIABLES.items():
            if source.get(variable):
                values[field] = source[variable]
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0])
            setting = _VARIABLES[field]
            # What holds a key or a password is not repeated, nor is the error that would.
            if cls.model_fields[field].repr:
                setting = f"{setting}={values[field]!r}"
            raise SettingsError(f"{setting} cannot be used: {first['msg'].lower()}") from None

    def environment_of(self, names: Iterable[str]) -> Mapping[str, str]:
        """The values of these environment variables; one that is unset or empty is left out."""
        mapping: dict[str, str] = {}
        for name in names:
            value = self.variables.get(name)
            if value:
                mapping[name] = value
        return mapping

    @property
    def secrets(self) -> frozenset[str]:
        """The keys it knows, and what of the environment is called one: no trace and no recording holds them."""
        own = {
            "openai_api_key": self.openai_api_key or "",
            "opik_api_key": self.opik_api_key or "",
            # An address may hold the password.
            "redis_password": self.redis or "",
            "seal_key": self.seal_key or "",
            "operator_key": self.operator_key or "",
            "alert_key": self.alert_key or "",
        }
        secrets = secret_values(own, self.variables, names=self.secret_names)
        passwords: dict[str, str] = {}
        for place in (self.store, self.documents or ""):
            for password in url_passwords(place):
                passwords[password] = password
        return secrets | secret_values(passwords, names=passwords)

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
        if self.store == ":memory:" or is_url(self.store):
            return _state() / "grids"
        return Path(self.store).parent / "grids"

    @property
    def store_name(self) -> str:
        """What people may read of where the store is: no password."""
        return without_password(self.store)

    def with_(self, **changes: Any) -> "Settings":
        """The same settings, some changed."""
        return Settings(**{**self.model_dump(), **changes})


_VARIABLES: Mapping[str, str] = {
    "deck": "KIT_DECK",
    "data": "KIT_DATA",
    "store": "KIT_STORE",
    "documents": "KIT_DOCUMENTS",
    "retention_days": "KIT_RETENTION_DAYS",
    "environment": "KIT_ENV",
    "model": "KIT_MODEL",
    "openai_api_key": "OPENAI_API_KEY",
    "openai_base_url": "OPENAI_BASE_URL",
    "pace": "KIT_PACE",
    "today": "KIT_TODAY",
    "opik_url": "OPIK_URL_OVERRIDE",
    "opik_api_key": "OPIK_API_KEY",
    "opik_workspace": "OPIK_WORKSPACE",
    "opik_project": "OPIK_PROJECT_NAME",
    "skill_service_url": "SKILL_SERVICE_URL",
    "service_url": "KIT_SERVICE_URL",
    "embedder": "KIT_EMBEDDER",
    "redis": "KIT_REDIS",
    "seal_key": "KIT_SEAL_KEY",
    "operator_key": "KIT_OPERATOR_KEY",
    "alert_webhook": "KIT_ALERT_WEBHOOK",
    "alert_key": "KIT_ALERT_KEY",
    "langsmith": "KIT_LANGSMITH",
    "otlp_endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT",
    "otlp_service": "OTEL_SERVICE_NAME",
    "turn_lines": "KIT_TURN_LINES",
    "tenant": "KIT_TENANT",
    "user": "KIT_USER",
    "visitor": "KIT_VISITOR",
    "visitor_key": "KIT_VISITOR_KEY",
    "visitor_audience": "KIT_VISITOR_AUDIENCE",
    "visitor_claim": "KIT_VISITOR_CLAIM",
    "tenant_claim": "KIT_TENANT_CLAIM",
    "operator_claim": "KIT_OPERATOR_CLAIM",
    "visitor_turns_at_once": "KIT_VISITOR_TURNS_AT_ONCE",
    "visitor_turns_a_minute": "KIT_VISITOR_TURNS_A_MINUTE",
    "visitor_dollars_a_day": "KIT_VISITOR_DOLLARS_A_DAY",
    "location": "KIT_LOCATION",
    "locale": "KIT_LOCALE",
}
