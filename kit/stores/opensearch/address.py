"""Which OpenSearch, and how its indices are named: what KIT_DOCUMENTS says."""

import hashlib
import re
from typing import Annotated, Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pydantic import Field, ValidationError

from kit.core.documents.document import DIMENSION
from kit.core.errors import SettingsError
from kit.core.value import Value

SCHEME = "opensearch+"
LONGEST_ID = 512
"""Bytes."""
_PLAIN_TENANT = re.compile(r"[a-z0-9_]{1,40}")


class Address(Value):
    """One OpenSearch, with the options that stand behind its URL."""

    url: str
    user: str = ""
    password: str = Field(default="", repr=False)
    prefix: Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9_-]*)?$")] = ""
    """What the name of every index begins with."""
    tenants: Literal["together", "apart"] = "together"
    """`apart`: an index for each tenant, so that a role may name it."""
    dimension: Annotated[int, Field(ge=1, le=16_000)] = DIMENSION
    """Numbers in a vector of the embedder."""
    refresh: Annotated[str, Field(pattern=r"^\d+(ms|s|m)$")] = "1s"
    """How late a search by others, such as a dashboard, may be; the kit's own are never."""
    timeout: Annotated[float, Field(gt=0)] = 10.0
    """Seconds that one request may take."""
    ca: str | None = None
    """The file of the certificates that the server's is held against; None: those of the machine."""

    def index(self, kind: str, tenant_id: str) -> str:
        """Returns the index, of events the beginning of its name, in which a tenant's documents are."""
        if self.tenants == "apart":
            return f"{self.prefix}{kind}-{_name_of(tenant_id)}"
        return f"{self.prefix}{kind}"

    def every_index(self, kind: str) -> str:
        """Returns a pattern for the indices of a kind, of whatever tenant and day."""
        return f"{self.prefix}{kind},{self.prefix}{kind}-*"


def _name_of(tenant_id: str) -> str:
    """Returns what stands for a tenant in the name of an index, which has no capitals and few signs."""
    if _PLAIN_TENANT.fullmatch(tenant_id):
        return tenant_id
    # Longer than any that is plain, so that nobody can be called what another one is hashed to.
    return hashlib.sha256(tenant_id.encode()).hexdigest()


def id_of(tenant_id: str, name: str) -> str:
    """Returns the id of a document, which no name of another tenant has."""
    text = f"{quote(tenant_id, safe='')}:{name}"
    if len(text.encode()) <= LONGEST_ID:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


def address_of(text: str) -> Address:
    """Reads `opensearch+https://USER:PASSWORD@HOST:9200/PREFIX?tenants=apart`. Raises SettingsError."""
    parts = urlsplit(text.removeprefix(SCHEME))
    host = parts.netloc.rpartition("@")[2]
    fields = dict(parse_qsl(parts.query))
    try:
        return Address.model_validate(
            {
                **fields,
                "url": f"{parts.scheme}://{host}",
                "user": unquote(parts.username or ""),
                "password": unquote(parts.password or ""),
                "prefix": parts.path.strip("/"),
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        # What is not repeated may be a password.
        raise SettingsError(
            f"KIT_DOCUMENTS cannot be used, its {first['loc'][0]}: {first['msg'].lower()} (docs/stores.md)"
        ) from None
