"""Who asks: headers that the caller in front of this API sets, after it knows its user."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, HTTPException, Request
from pydantic import SecretStr

from kit.core.context import Principal
from kit.service.bodies import Id


@dataclass(frozen=True)
class Caller:
    """Who asks, in which session, and with which key for the skill service."""

    principal: Principal
    session_id: str | None
    key: SecretStr | None

    def check(self, tenant_id: str, user_id: str | None, session_id: str | None = None) -> None:
        """Raises HTTPException 400 where a body or a query names somebody else than the headers do."""
        is_same = tenant_id == self.principal.tenant_id
        if user_id is not None and user_id != self.principal.user_id:
            is_same = False
        if session_id is not None and self.session_id not in (None, session_id):
            is_same = False
        if not is_same:
            raise HTTPException(400, "the request names another identity than its headers")


async def _caller(
    request: Request,
    x_tenant_id: Annotated[Id | None, Header()] = None,
    x_user_id: Annotated[Id | None, Header()] = None,
    x_session_id: Annotated[Id | None, Header()] = None,
    x_api_key: Annotated[SecretStr | None, Header()] = None,
) -> Caller:
    for name in ("x-tenant-id", "x-user-id", "x-session-id"):
        # A proxy that adds its header behind that of its client would let the client say who asks.
        if len(set(request.headers.getlist(name))) > 1:
            raise HTTPException(400, f"{name} is there twice, and says two different things")
    if x_tenant_id is None or x_user_id is None:
        raise HTTPException(
            401, "X-Tenant-Id and X-User-Id say who asks, and one of them is missing"
        )
    if x_api_key is not None and not x_api_key.get_secret_value().strip():
        x_api_key = None
    principal = Principal(tenant_id=x_tenant_id, user_id=x_user_id)
    return Caller(principal, x_session_id, x_api_key)


Who = Annotated[Caller, Depends(_caller)]
