"""Who may call what: the key of a tenant, and tokens that let one step of a plan call the skills it
names and no others."""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from time import monotonic

LIFETIME = 600.0
"""Seconds for which a token holds."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a caller may see and call."""

    tenant: str
    allowed: frozenset[str] | None = None
    """The skills that a token names; None for the tenant's key, which calls all that the tenant has."""

    def narrowed(self, skills: Iterable[str]) -> "Scope":
        """The same, for these of its skills alone."""
        names = frozenset(skills)
        return Scope(self.tenant, names if self.allowed is None else self.allowed & names)

    def allows(self, skill: str) -> bool:
        """Whether a skill of the tenant may be called."""
        return self.allowed is None or skill in self.allowed


class Access:
    """The keys of the tenants, and the tokens made with them; both are held here and nowhere else."""

    def __init__(self, keys: Mapping[str, str], clock: Callable[[], float] = monotonic):
        self._keys = keys
        self._clock = clock
        self._tokens: dict[str, tuple[Scope, float]] = {}

    def scope(self, tenant: str, key: str) -> Scope | None:
        """What a key or token opens at a tenant's URL; None where it opens nothing there."""
        own = self._keys.get(tenant, "")
        if own and compare_digest(own.encode(), key.encode()):
            return Scope(tenant)
        scope, end = self._tokens.get(key, (None, 0.0))
        if scope and scope.tenant == tenant and self._clock() < end:
            return scope
        return None

    def narrow(self, scope: Scope, skills: Collection[str]) -> str:
        """Makes a token for these skills of the scope's tenant."""
        now = self._clock()
        self._tokens = {token: entry for token, entry in self._tokens.items() if now < entry[1]}
        token = f"step-{secrets.token_urlsafe(24)}"
        self._tokens[token] = (Scope(scope.tenant, frozenset(skills)), now + LIFETIME)
        return token
