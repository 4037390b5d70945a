"""A message that speaks of danger to life is answered with whom to call, before anybody is asked."""

from collections.abc import Sequence

from kit.compose.locale import language_of
from kit.core.bodies.guard import GuardActed
from kit.core.language.danger import DangerFinder
from kit.core.picture import strip_marks
from kit.runtime.context import RunContext
from kit.runtime.message import LONGEST


def answer_to_danger(message: str, dangers: Sequence[DangerFinder], ctx: RunContext) -> str | None:
    """Returns the deck's words for a message that speaks of danger to life; None for any other.

    Every locale of the deck is looked through, for people in need write in their own language, and they are answered
    in it. Where two locales hold the same words, the session's goes first.
    """
    # A message of any length is searched only as far as one is read at all.
    text = strip_marks(message)[:LONGEST]
    language = language_of(ctx.inherited.locale)
    own_language_first = sorted(
        dangers, key=lambda finder: language_of(finder.danger.id) != language
    )
    for finder in own_language_first:
        kind = finder.kind_of(text)
        if kind is not None:
            reason = f"the message speaks of {kind.replace('_', ' ')} ({finder.danger.id})"
            ctx.emit(GuardActed(guard="danger", action="answered", agent=ctx.path, reason=reason))
            return finder.danger.kinds[kind].reply
    return None
