"""Agents as tools, mediated: the orchestrator's model routes by tool calls and composes what comes back."""

from collections.abc import Callable

from kit.core.outcome import AgentCall, Outcome, tell_left_out
from kit.runtime.agents.contract import refusal
from kit.runtime.agents.llm_agent import Decision, LLMAgent
from kit.runtime.answer.acknowledge import acknowledge, of_nobody, rescued
from kit.runtime.answer.owed import is_unanswerable
from kit.runtime.answer.raw_text import is_written_call, scrub
from kit.runtime.context import RunContext
from kit.runtime.dispatch import fan_out
from kit.runtime.guards.checks import decide, tidy
from kit.runtime.message import Thread, instructed
from kit.runtime.pattern import Pattern

MAX_ROUNDS = 4
"""Rounds of calls an orchestrator gets in one turn; the cap counts over all of them."""


async def run_mediated(call: AgentCall, ctx: RunContext) -> Outcome:
    """Decide, fan out, compose. Every word the user reads is the orchestrator's."""
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    thread = lead.open(call, ctx)
    decision = await decide(thread, call, lead, ctx, ctx.turn.settings.guards)
    return await compose_rounds(decision, thread, call, lead, ctx, tells_left_out=True)


MEDIATED = Pattern("mediated", run_mediated, has_failsafe=True)


async def compose_rounds(
    decision: Decision,
    thread: Thread,
    call: AgentCall,
    lead: LLMAgent,
    ctx: RunContext,
    max_rounds: int = MAX_ROUNDS,
    narrow: Callable[[Decision, RunContext], Decision] | None = None,
    *,
    tells_left_out: bool = False,
) -> Outcome:
    """Runs what was decided and composes, for `max_rounds` rounds; `narrow` takes calls out of later
    ones. The last text is checked.

    `tells_left_out`: the composer is told which parts of the message nobody was asked for and no answer speaks of.
    """
    # Live only while nothing is owed: what was streamed and must be taken back has been read.
    rounds = 0
    clean = True
    whole = True
    turn = ctx.turn
    while decision.calls and rounds < max_rounds:
        rounds += 1
        fan = await fan_out(decision.asks, ctx)
        if is_unanswerable(turn):
            # the preamble may repeat words that nobody here knows anything about
            ctx.replace_lead(turn.locale.line(lead.card.preamble))
            return outcome_of(rescued(ctx), call)
        clean = clean and fan.clean
        news = await lead.tool_messages(decision, fan, ctx)
        left_out = turn.coverage().left_out
        if tells_left_out and rounds == 1 and left_out.count:
            thread = instructed(thread, tell_left_out(left_out))
        thread += news
        for tool_call in decision.own:
            turn.tool_call_ids.add(tool_call["id"])
        # What was done is told once the text has been held against it.
        whole = clean and not left_out.count and not turn.acts.entries
        decision = tidy(await lead.compose(thread, call, ctx, live=whole, news=len(news) - 1), ctx)
        if narrow is not None:
            decision = narrow(decision, ctx)
        turn.emitted_later += len(decision.asks)
    if not rounds:
        declined = refusal(decision.reply.message)
        if declined is not None and not decision.text:
            # it failed, and the words in which it was declined are the answer
            suggestion = scrub(declined.words, ctx) if declined.words else None
            return call.failed("refusal", declined.detail, suggestion)
        if is_written_call(decision.text, (*lead.sub_cards, *lead.tools)):
            # Nobody was asked, whatever is left of the text once the call is cut out.
            return call.failed("contract_violation", "a tool call written as text")
        return outcome_of(of_nobody(decision.text, ctx), call)
    text = await acknowledge(decision.text, lead, thread, call, ctx, clean=clean)
    return outcome_of(text, call)


def outcome_of(text: str, call: AgentCall) -> Outcome:
    """Returns a turn's text as its outcome; an empty text is a failure."""
    if text:
        return call.answered(text)
    return call.failed("insufficient", "no text composed")
