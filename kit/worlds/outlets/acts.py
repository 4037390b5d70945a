"""The skills that do something. All that one does is its line in the log of calls; it tells how
many an outlet has then."""

from collections.abc import Mapping, Sequence

from kit.worlds.outlets.call_log import LoggedCall
from kit.worlds.outlets.lookups import Arguments, Result
from kit.worlds.outlets.rows import outlets_of

ACTS: Mapping[str, str] = {"outlet_note": "notes", "outlet_call": "calls"}
"""Skill id -> the field of its result with the number of times it was done for the outlet."""


def act(tenant: str, skill: str, arguments: Arguments, before: Sequence[LoggedCall]) -> Result:
    """Does it for one outlet, after the calls before; nothing for an outlet that the tenant has not."""
    outlet = arguments["outlet_id"]
    found = outlet in outlets_of(tenant)
    own = (
        call.arguments["outlet_id"]
        for call in before
        if (call.tenant, call.skill) == (tenant, skill)
    )
    return {
        "found": found,
        "outlet_id": outlet,
        ACTS[skill]: 1 + sum(one == outlet for one in own) if found else 0,
    }
