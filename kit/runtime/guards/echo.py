"""Whose question a short reply answers (decisions 6)."""

from kit.core.language.small_talk import asks, bare_answer
from kit.core.language.words import content_words, words
from kit.core.picture import strip_marks
from kit.runtime.context import RunContext

SHORT = 4
"""Words a reply may have to count as the echo of a question."""


def awaited_by(reply: str, ctx: RunContext) -> str | None:
    """The agent in play whose question this short reply answers; None when it stands on its own.

    The support agent of the deck goes first; without it, only an agent that was alone in play can have asked.
    """
    turn = ctx.turn
    in_play = turn.dynamic.in_play
    if not in_play:
        return None
    support = turn.settings.support_agent
    agent = in_play[0] if len(in_play) == 1 else None
    if support in in_play:
        agent = support
    if agent is None or agent not in ctx.callees:
        return None
    last_words = turn.memory.said_last()
    words_of_agent = last_words
    if len(in_play) > 1:
        words_of_agent = turn.memory.said_last(agent) or last_words
    question = f"{last_words} {words_of_agent}"
    if asks(words_of_agent) and echoes(strip_marks(reply), question):
        return agent
    return None


def echoes(reply: str, question: str) -> bool:
    """Whether a reply of a few words only agrees, only declines, or only repeats words of the question."""
    if "?" in reply or not 0 < len(words(reply)) <= SHORT:
        return False
    topic = content_words(reply)
    return bare_answer(reply) or (bool(topic) and topic <= content_words(question))
