"""Keys, tokens and passwords: what one looks like, and values without them."""

import re
from collections.abc import Collection, Mapping
from functools import cache, partial
from typing import Any, Literal, TypeVar, get_args, get_origin
from urllib.parse import parse_qs, unquote

from pydantic import SecretStr
from pydantic_core import PydanticSerializationError

from kit.core.value import Value, map_leaves

SECRET = "[secret]"
SHORTEST = 8
"""Characters a secret has at least; a shorter one is taken for a placeholder."""
_LOOKS_LIKE = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{12,}"
    r"|\b(?:bearer|basic)\s+[\w.~+/-]{8,}=*"
    r"|\b(?:api[-_ ]?key|x-api-key|authorization)\b[\"']?\s*[:=]\s*[\"']?[^\s\"',}]{8,}",
    re.IGNORECASE,
)
# A password of a URL may hold whatever its writer forgot to encode, so it ends with the last `@`.
_URL_PASSWORD = re.compile(r"://[^:@]*:(.*)@", re.DOTALL)
_URL_USER = re.compile(r"://.*@", re.DOTALL)
_NAMES_ONE = re.compile("KEY|TOKEN|SECRET|PASSWORD|AUTHORIZATION", re.IGNORECASE)
_ADDRESSES = frozenset({"agent", "holder", "id", "memory_key", "pattern"})
"""Fields beside those that end in `_id` by which something is found."""
V = TypeVar("V", bound=Value)


def secret_values(*named: Mapping[str, str], names: Collection[str] = ()) -> frozenset[str]:
    """The values of variables and headers whose names, or these, say that they are secret."""
    secrets: set[str] = set()
    for group in named:
        for name, value in group.items():
            if _NAMES_ONE.search(name) or name in names:
                secrets.add(value.strip())
    # To take out a short one, such as `test`, would take words out of answers.
    return frozenset(secret for secret in secrets if len(secret) >= SHORTEST)


def with_key(secrets: frozenset[str], key: SecretStr) -> frozenset[str]:
    """Adds the key of a request to secrets."""
    if len(key.get_secret_value()) < SHORTEST:
        return secrets
    return secrets | {key.get_secret_value()}


def without_keys(text: str) -> str:
    """The text without what looks like a key or a header that carries one."""
    return _LOOKS_LIKE.sub(SECRET, text)


def without_secrets(value: V, secrets: Collection[str]) -> V:
    """The same value without these secrets; itself where it holds none.

    Ids, and fields that hold one of a few fixed words, stay as they are: rows are found by them, and
    a tenant or a session may well be called what a server is told.
    """
    # Most values hold none, and to look at their JSON takes a tenth of the time of a copy.
    try:
        text = value.model_dump_json()
    except PydanticSerializationError:
        # Half of a surrogate pair, which JSON in UTF-8 has no place for.
        text = ""
    if text and not any(secret in text for secret in secrets):
        return value
    cleaned: V = _without(value, secrets)
    return cleaned


def holds_secret(text: str, secrets: Collection[str]) -> bool:
    """Whether a text holds one of these, or what looks like a key."""
    return any(secret in text for secret in secrets) or _LOOKS_LIKE.search(text) is not None


def scrubbed(value: Any, secrets: Collection[str]) -> Any:
    """The same without keys: those that are known, and whatever looks like one."""

    def scrub(leaf: Any) -> Any:
        leaf = _replace(leaf, secrets)
        if isinstance(leaf, str):
            return without_keys(leaf)
        return leaf

    return map_leaves(value, scrub)


def without_secret_words(text: str, secrets: Collection[str]) -> str:
    """The text without these secrets."""
    for secret in secrets:
        text = text.replace(secret, SECRET)
    return text


def is_url(store: str) -> bool:
    """Whether a store is named by a URL, and not by the path of a file."""
    return "://" in store


def url_passwords(store: str) -> frozenset[str]:
    """Returns the passwords in a store's URL, as it has them and as they are sent."""
    found: set[str] = set()
    if is_url(store):
        found.update(_URL_PASSWORD.findall(store))
        query = parse_qs(store.partition("?")[2])
        for name in ("password", "sslpassword"):
            found.update(query.get(name, ()))
    return frozenset(found | set(map(unquote, found))) - {""}


def without_password(store: str) -> str:
    """Returns a store's path, or its URL without user, password and options."""
    if not is_url(store):
        return store
    return _URL_USER.sub("://", store).partition("?")[0]


def _without(leaf: Any, secrets: Collection[str]) -> Any:
    if not isinstance(leaf, Value):
        return _replace(leaf, secrets)
    kind = type(leaf)
    kept = _kept_fields(kind)
    fields = dict(vars(leaf))
    for name in fields.keys() - kept:
        fields[name] = map_leaves(fields[name], partial(_without, secrets=secrets))
    return kind.model_validate(fields)


@cache
def _kept_fields(kind: type[Value]) -> frozenset[str]:
    """The fields of a kind of value that find a row, or hold one of a few fixed words."""
    names: set[str] = set()
    for name, field in kind.model_fields.items():
        literals = (field.annotation, *get_args(field.annotation))
        is_fixed = any(get_origin(literal) is Literal for literal in literals)
        if is_fixed or name in _ADDRESSES or name.endswith("_id"):
            names.add(name)
    return frozenset(names)


def _replace(leaf: Any, secrets: Collection[str]) -> Any:
    if isinstance(leaf, str):
        return without_secret_words(leaf, secrets)
    return leaf
