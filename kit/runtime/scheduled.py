"""A turn that nobody typed: a scheduled job's, under the same chain of custody as a chat turn (PC2-PD1)."""

import uuid

from kit.core.context import Principal, Session
from kit.runtime.host import Host
from kit.runtime.turn import Turn, run_turn


def run_scheduled(message: str, target: Principal, kit: Host, *, job: str, location: str | None = None) -> Turn:
    """Starts a turn on behalf of a job's target user.

    The principal is set here, once, and travels unchanged to every service, which is asked and verified as in a chat. Each run
    is an episode of its own, `job:<job>:<unique>`: it reads nobody's chat, and no chat reads it.
    """
    return run_turn(message, Session(id=f"job:{job}:{uuid.uuid4().hex}", principal=target, location=location), kit)
