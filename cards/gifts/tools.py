"""Points, and the gift cards that they are redeemed for: each redemption is an event in the kit's own store."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from kit.core.context import Principal
from kit.core.documents.document import AgentEvent
from kit.stores.documents.protocol import EventFilter, EventStore
from kit.tools.loading import function_tool
from kit.tools.tool import Toolbox, tool_context
from kit.tools.tool_factory import ToolSetup, tool_factory

WELCOME = 5_000
"""Points that every account begins with."""
REDEEMED = "points.redeemed"


@tool_factory("points_left", "redeem_points")
@asynccontextmanager
async def TOOLS(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
    """Opens the tools over the events of the store."""

    async def points_left() -> str:
        """Says how many points the account has, and what was redeemed so far."""
        redemptions = await _redemptions(
            setup.documents().events, tool_context().inherited.principal
        )
        lines = [f"The account has {_left(redemptions):,} points."]
        equal_ones = Counter(
            (event.payload["points"], event.payload["shop"]) for event in redemptions
        )
        for (points, shop), count in equal_ones.items():
            line = f"{points:,} points became a gift card of {shop}"
            # Whoever words the answer may take two equal sentences for one.
            if count > 1:
                line += f", {count} times"
            lines.append(f"{line}.")
        return " ".join(lines)

    async def too_many(arguments: Mapping[str, Any]) -> str | None:
        """Says that there are not so many points: nobody is asked for a yes to that."""
        context = tool_context()
        redemptions = await _redemptions(setup.documents().events, context.inherited.principal)
        key = context.idempotency_key()
        left = _left(redemptions, but=key)
        if 0 < arguments["points"] <= left:
            return None
        return f"Nothing was redeemed: the account has {left:,} points."

    async def redeem_points(
        points: Annotated[int, "How many points to redeem."] = 500,
        shop: Annotated[str, "The shop whose gift card it is."] = "Harvest Market",
    ) -> str:
        """Redeems points for a gift card of a shop."""
        events = setup.documents().events
        principal = tool_context().inherited.principal
        key = tool_context().idempotency_key()
        while True:
            redemptions = await _redemptions(events, principal)
            left = _left(redemptions, but=key)
            if not 0 < points <= left:
                return f"Nothing was redeemed: the account has {left:,} points."
            if key in map(_key_of, redemptions):
                # It was done before the process died that did it.
                break
            # Each redemption takes the next number of the account, and a number is given once: of two that were
            # decided on the same points, in any two processes, the slower one decides again.
            # Old ones may have been swept (KIT_RETENTION_DAYS), so that their count is no number.
            number = 1 + max(map(_number_of, redemptions), default=0)
            kept = await events.append(
                AgentEvent(
                    event_id=f"{REDEEMED}:{principal.user_id}:{number}",
                    tenant_id=principal.tenant_id,
                    user_id=principal.user_id,
                    event_type=REDEEMED,
                    ts=time.time(),
                    payload={"points": points, "shop": shop, "key": key, "number": number},
                )
            )
            if _key_of(kept) == key:
                break
        return (
            f"{points:,} points were redeemed for a gift card of {shop}. "
            f"The account has {left - points:,} points left."
        )

    yield {
        "points_left": function_tool("points_left", points_left),
        "redeem_points": function_tool("redeem_points", redeem_points, impossible=too_many),
    }


async def _redemptions(events: EventStore, principal: Principal) -> list[AgentEvent]:
    by = EventFilter(tenant_id=principal.tenant_id, user_id=principal.user_id, event_type=REDEEMED)
    # Each takes a point at least.
    return await events.query(by, limit=WELCOME)


def _key_of(redemption: AgentEvent) -> str:
    """The idempotency key of the call that made it; stores of an earlier version have it as the event's id."""
    return redemption.payload.get("key", redemption.event_id)


def _number_of(redemption: AgentEvent) -> int:
    """Which redemption of its account it is; 0 in stores of an earlier version, which did not count them."""
    return redemption.payload.get("number", 0)


def _left(redemptions: Iterable[AgentEvent], but: str = "") -> int:
    """The points that these redemptions leave, without that of the call with the key `but`."""
    return WELCOME - sum(event.payload["points"] for event in redemptions if _key_of(event) != but)
