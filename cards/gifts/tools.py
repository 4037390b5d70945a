"""Points, and the gift cards that they are redeemed for: each redemption is an event in the kit's own store."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
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
    # Two redemptions of one message run side by side: each must see what the other has taken.
    one_at_a_time = asyncio.Lock()

    async def points_left() -> str:
        """Says how many points the account has, and what was redeemed so far."""
        redemptions = await _redemptions(
            setup.documents().events, tool_context().inherited.principal
        )
        spent = sum(event.payload["points"] for event in redemptions)
        lines = [f"The account has {WELCOME - spent:,} points."]
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

    async def points_before() -> int:
        """Returns the points of the account without the redemption that is being made."""
        context = tool_context()
        redemptions = await _redemptions(setup.documents().events, context.inherited.principal)
        key = context.idempotency_key()
        spent = sum(event.payload["points"] for event in redemptions if event.event_id != key)
        return WELCOME - spent

    async def too_many(arguments: Mapping[str, Any]) -> str | None:
        """Says that there are not so many points: nobody is asked for a yes to that."""
        left = await points_before()
        if 0 < arguments["points"] <= left:
            return None
        return f"Nothing was redeemed: the account has {left:,} points."

    async def redeem_points(
        points: Annotated[int, "How many points to redeem."] = 500,
        shop: Annotated[str, "The shop whose gift card it is."] = "Harvest Market",
    ) -> str:
        """Redeems points for a gift card of a shop."""
        async with one_at_a_time:
            events = setup.documents().events
            principal = tool_context().inherited.principal
            key = tool_context().idempotency_key()
            left = await points_before()
            if not 0 < points <= left:
                return f"Nothing was redeemed: the account has {left:,} points."
            # An event that is reported twice is kept once: so a second run redeems nothing more.
            await events.append(
                AgentEvent(
                    event_id=key,
                    tenant_id=principal.tenant_id,
                    user_id=principal.user_id,
                    event_type=REDEEMED,
                    ts=time.time(),
                    payload={"points": points, "shop": shop},
                )
            )
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
    return await events.query(by)
