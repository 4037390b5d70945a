"""Who a turn is for, and what a sub-agent inherits from it."""

import hashlib
from enum import Enum
from typing import Final, NamedTuple
from urllib.parse import quote

from kit.core.value import Value

ID = r"^[A-Za-z0-9_][A-Za-z0-9_.@:+-]{0,127}$"
"""What an id of a tenant, a user or a session looks like that a server takes from outside."""


class Principal(Value):
    """The tenant and user on whose behalf a turn runs; two are equal when both fields are (decisions 11)."""

    tenant_id: str
    user_id: str

    def __str__(self) -> str:
        """Both ids in one text that no other principal has, whatever characters they hold."""
        # Quoted: `a/b` of tenant `c` and `b` of tenant `c/a` would be the same text.
        return f"{quote(self.tenant_id, safe='')}/{quote(self.user_id, safe='')}"


def turn_id_of(principal: Principal, name: str) -> str:
    """Returns the id of the turn to which a principal has given a name: the same one in every process, and no other
    principal's."""
    return hashlib.sha256(f"{principal}/{name}".encode()).hexdigest()[:32]


class Operator(Enum):
    """The reader that is nobody's user: an operator's own tools, which read the turns of everybody."""

    OPERATOR = "operator"


OPERATOR: Final = Operator.OPERATOR
Reader = Principal | Operator
"""Who asks the store for a turn: a principal reads its own turns alone."""


class SessionKey(NamedTuple):
    """The name of a session in the store. Each tenant chooses its own ids, so an id alone names none."""

    tenant_id: str
    session_id: str

    def __str__(self) -> str:
        """Returns both ids in one text, which no other session has."""
        return f"{quote(self.tenant_id, safe='')}/{quote(self.session_id, safe='')}"


class Session(Value):
    """A conversation as a value; its history lives in the store. An episode is a session."""

    id: str
    principal: Principal
    locale: str = "en-US"
    location: str | None = None
    flags: dict[str, bool] = {}
    """Feature flags this request decides differently from the settings; the store does not keep them (decisions 28)."""
    tenant_persona: str = ""
    """How the tenant has its assistant speak: part of the prefix of the prompts (decisions 19); not kept either."""
    persona: str = ""
    """How this user wishes to be spoken to: part of the suffix; not kept either."""

    @property
    def key(self) -> SessionKey:
        return SessionKey(self.principal.tenant_id, self.id)


class InheritedContext(Value):
    """What crosses from the orchestrator to a sub-agent at instantiation."""

    principal: Principal
    episode_id: str
    locale: str
    location: str | None = None
    prior_context: str | None = None
    """Names entities, ids and goals of earlier turns with other sub-agents; None when there is nothing to carry."""

    @property
    def session_key(self) -> SessionKey:
        """The session that the turn belongs to."""
        return SessionKey(self.principal.tenant_id, self.episode_id)


class DynamicContext(Value):
    """The per-request tail of a system prompt: never part of the cohort prefix."""

    date: str
    user_id: str
    locale: str
    location: str | None = None
    in_play: tuple[str, ...] = ()
    """Sub-agents called in the previous turn: lets an elliptical reply stay where it belongs (decisions 6)."""
    persona: str = ""
    """How this user wishes to be spoken to."""
    unanswered: tuple[str, ...] = ()
    """Sub-agents whose last question is still open: lets "try again" go where it belongs (decisions 27)."""


class Recollection(Value):
    """Which turns of its session a turn went on from. It is stored, since later turns may have changed that by the time
    that it goes on."""

    in_play: tuple[str, ...] = ()
    """Who was called in the newest turn that had ended."""
    routed: tuple[str, ...] | None = None
    """Who was called in the newest ended turn that called anybody or failed: small talk in between is no switch."""
    unanswered: tuple[str, ...] = ()
    """Whose question of that turn was still open."""
    beside: tuple[str, ...] = ()
    """Turns that were at work, or not stored yet: this one knows nothing of them."""
