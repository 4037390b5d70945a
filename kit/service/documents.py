"""Endpoints of souls and memories, the outputs of steps among them."""

import hmac
import time
from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Path, Query
from pydantic import SecretStr

from kit.core.documents.document import Scope, Soul
from kit.planning.record import outputs_of
from kit.service.bodies import FoundMemory, Id, MemoryList, PlanOutputs, SoulRequest
from kit.service.identity import Who
from kit.service.plans import PlanId
from kit.service.service import Serving
from kit.settings import Settings
from kit.tools.recall import find_memories

router = APIRouter(prefix="/agent")


@router.put("/souls/{tenant_id}")
async def put_soul(
    tenant_id: Annotated[Id, Path()],
    body: SoulRequest,
    caller: Who,
    service: Serving,
    x_operator_key: Annotated[SecretStr | None, Header()] = None,
) -> Soul:
    """Writes how the assistant speaks to the user that the body names; without one, to all of the tenant, which
    takes the key of its operator in `X-Operator-Key`."""
    if tenant_id != caller.principal.tenant_id:
        raise HTTPException(403, "this is another tenant's")
    caller.check(tenant_id, body.user_id)
    if body.user_id is None and not _is_operators(x_operator_key, service.kit.settings):
        raise HTTPException(
            403,
            "what all users of a tenant are answered by is its operator's to write: name the user, or send "
            "KIT_OPERATOR_KEY of this server as X-Operator-Key",
        )
    soul = Soul(
        id=f"{tenant_id}/{body.user_id or ''}",
        tenant_id=tenant_id,
        user_id=body.user_id,
        persona=body.persona,
        policies=body.policies,
        updated_at=time.time(),
    )
    await service.documents.souls.put(soul)
    return soul


def _is_operators(key: SecretStr | None, settings: Settings) -> bool:
    if key is None or not settings.operator_key:
        return False
    sent_key = key.get_secret_value().encode()
    return hmac.compare_digest(sent_key, settings.operator_key.encode())


@router.get("/plans/{plan_id}/outputs")
async def outputs(plan_id: PlanId, caller: Who, service: Serving) -> PlanOutputs:
    """Returns what the steps of a plan gave that are done."""
    stored = await service.plan(plan_id, caller.principal)
    return PlanOutputs(outputs=await outputs_of(stored, service.documents.memory))


@router.get("/memory/query")
async def query_memory(
    tenant_id: Id,
    user_id: Id,
    query_text: Annotated[str, Query(min_length=1, max_length=2_000)],
    caller: Who,
    service: Serving,
    top_k: Annotated[int, Query(ge=1, le=100)] = 5,
    scope: Scope = "session",
) -> MemoryList:
    """Finds the memories of a scope that are nearest to the query in meaning and in words.

    Those of scope `session` are of the session that `X-Session-Id` names.
    """
    caller.check(tenant_id, user_id)
    if scope == "session" and caller.session_id is None:
        raise HTTPException(400, "X-Session-Id says whose memories, and is missing")
    memories = await find_memories(
        service.documents.memory,
        service.kit.embedder,
        caller.principal,
        scope,
        query_text,
        top_k,
        caller.session_id or "",
    )
    matches = [FoundMemory.model_validate(memory, from_attributes=True) for memory in memories]
    return MemoryList(memories=tuple(matches))
