"""Faults of the support service, asked for in a header like those of the context service."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from kit.core.fault import CANARY
from kit.worlds.consumer.support_service import Lines, line_of
from kit.worlds.service.faults import STRANGER, fault_kinds


async def lines_by_header(headers: Mapping[str, str], lines: Lines) -> AsyncGenerator[bytes, None]:
    """Spoils the lines of an answer the way the header asks: they say what an envelope would say.

    Error: closed without an answer. Partial: broken off after the first sentence. Another
    principal: named in the opening.
    """
    kinds = fault_kinds(headers)
    async with aclosing(lines):
        if "bad_payload" in kinds or "version_break" in kinds:
            yield line_of(kind="opened-2", said=CANARY)
            return
        number = 0
        async for line in lines:
            if number == 0 and "foreign_principal" in kinds:
                line = line_of(
                    kind="opened", conversation_id=f"sc-{CANARY}", principal=f"acme/{STRANGER}"
                )
            elif number == 1 and "foreign_principal" in kinds:
                line = line_of(kind="text", text=f"A stranger's matter, {CANARY}.")
            elif number == 1 and "error_envelope" in kinds:
                line = line_of(kind="closed")
            yield line
            number += 1
            if number == 2 and {"error_envelope", "partial_envelope"} & set(kinds):
                return
