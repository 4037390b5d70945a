"""What a deck can be asked, from its cards: the answer to "what can you do", and to a question that
nobody can answer."""

from kit.core.language.small_talk import asks_for_help
from kit.core.outcome import Failure
from kit.runtime.context import RunContext, TurnState


def help_with(message: str, ctx: RunContext) -> str | None:
    """Returns what can be asked, when a message asks just that and the fastpath guard is on; else
    None (decisions 38)."""
    if not ctx.turn.settings.guards.fastpath or not asks_for_help(message):
        return None
    return askable(ctx) or None


def is_unanswerable(turn: TurnState) -> bool:
    """Whether everybody who was asked has nothing on it, and nobody was left out."""
    for outcome in turn.outcomes:
        if not isinstance(outcome, Failure) or outcome.reason != "unanswerable":
            return False
    return bool(turn.outcomes) and not turn.over_cap and not turn.left_out().count


def nobody_can(ctx: RunContext) -> str:
    """Returns the fixed sentence for a question that nobody can answer, with what can be asked."""
    return f"{ctx.turn.locale.sentences.nobody} {askable(ctx)}".strip()


def askable(ctx: RunContext) -> str:
    """Returns what can be asked, in the words of the cards; empty where there is nobody to ask."""
    agents = ctx.turn.agents
    cards = [agents[name].card for name in agents[ctx.path].card.sub_agents if name in agents]
    if not cards:
        # a monolith asks nobody, and holds the tools of every agent
        cards = [agent.card for agent in agents.values() if agent.card.topics]
    topics = [card.topics or card.id.replace("_", " ").replace("-", " ") for card in cards]
    if topics:
        return ctx.turn.locale.sentences.askable.format(topics="; ".join(topics))
    return ""
