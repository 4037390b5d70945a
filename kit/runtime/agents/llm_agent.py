"""The one agent class. A card without sub_agents runs its own loop; with them it decides, and
composes what came back."""

import datetime
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool

from kit.compose.prompts import PromptPlan
from kit.core.bodies.call import Purpose
from kit.core.bodies.speech import Text
from kit.core.card import AgentCard, Policy
from kit.core.outcome import CUT, SET_ASIDE, AgentCall, Failure, FanOut, Outcome, tell, tell_dropped
from kit.core.picture import Picture
from kit.core.value import builder
from kit.models.message import human_text, system_text, tool_text
from kit.runtime.agents.contract import Contract, outcome_of_reply
from kit.runtime.answer.own_acts import as_it_became
from kit.runtime.bound_model import BoundModel, Voice
from kit.runtime.call_model import ModelReply, call_with_fallback
from kit.runtime.call_tool import ToolRun, call_tool
from kit.runtime.context import RunContext
from kit.runtime.dispatch import together
from kit.runtime.handoff import read_call
from kit.runtime.memory import messages_of
from kit.runtime.message import UNREAD, Thread, human_message, with_calls
from kit.runtime.speech.narration import Hear
from kit.runtime.stream import Preamble, Speech
from kit.tools.bounds import ToolBounds
from kit.tools.tool import ToolResult

_text = builder(Text)
NEXT = "It takes over after you: give your own answer first."
SHOWN_BY_TOOLS = "This is what your tools returned as pictures, in the order of your calls."
"""What a model is told of a hand-over that waits for its tools."""
BORNE = 2
"""Replies in a row none of whose calls can be made (decisions 31)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What an orchestrator's model decided: text, sub-agents to ask, own tools to call."""

    reply: ModelReply
    asks: tuple[AgentCall, ...] = ()
    own: tuple[ToolCall, ...] = ()
    set_aside: tuple[AgentCall, ...] = ()
    """Calls a guard set aside: they never run, and their ids are answered by SET_ASIDE."""

    @property
    def text(self) -> str:
        return self.reply.text.strip()

    @property
    def calls(self) -> bool:
        """Whether the model waits for results; one that called without a word waits even when a
        guard set all of it aside."""
        return bool(self.asks or self.own or (self.set_aside and not self.text))

    def with_asks(
        self, asks: tuple[AgentCall, ...], set_aside: tuple[AgentCall, ...] | None = None
    ) -> "Decision":
        """The same decision with other words for its calls, or fewer of them; the model's message stays as it is."""
        if set_aside is None:
            return replace(self, asks=asks)
        return replace(self, asks=asks, set_aside=set_aside)

    def calling(
        self, asks: tuple[AgentCall, ...], own: tuple[ToolCall, ...] | None = None
    ) -> "Decision":
        """The same decision with other calls, in the model's own form, so that every id gets its tool message.

        What else the model's message carries stays on it. A call the model made itself stays as it worded it.
        """
        own_calls = self.own if own is None else own
        calls_by_id = {call["id"]: call for call in self.reply.calls}
        calls = [_call_of(ask, calls_by_id.get(ask.call_id)) for ask in (*asks, *self.set_aside)]
        reply = replace(self.reply, message=with_calls(self.reply.message, [*calls, *own_calls]))
        return Decision(reply, asks, own_calls, self.set_aside)


def _call_of(ask: AgentCall, tool_call: ToolCall | None) -> ToolCall:
    if tool_call is not None and tool_call["name"].removeprefix("ask_") == ask.agent:
        return tool_call
    args = {"query": ask.query, "intent_count": ask.intent_count or 1, **ask.fields}
    if ask.prior_context:
        args["prior_context"] = ask.prior_context
    return ToolCall(name=f"ask_{ask.agent}", args=args, id=ask.call_id)


@dataclass(frozen=True)
class LLMAgent:
    """A card, bound: its model with its tools, its prompt, its limits. Holds nothing of any turn."""

    card: AgentCard
    model: BoundModel
    prompt: PromptPlan
    tools: Mapping[str, BaseTool]
    policy: Policy
    sub_cards: Mapping[str, AgentCard]
    """Tool name -> card, for the sub-agents bound to this agent."""
    fallback: BoundModel | None = None
    composer: BoundModel | None = None
    """Words the answer in place of `model`, where the deck names a cheaper one for that."""
    contract: Contract = field(default_factory=Contract)
    new_tools: Mapping[str, datetime.date] = field(default_factory=dict[str, datetime.date])
    bounds: Mapping[str, ToolBounds] = field(default_factory=dict[str, ToolBounds])
    """Of its tools, those that have limits."""

    @cached_property
    def callees(self) -> frozenset[str]:
        """Ids of the sub-agents that are bound to it."""
        return frozenset(card.id for card in self.sub_cards.values())

    @cached_property
    def acts(self) -> frozenset[str]:
        """Names of its tools that do something in the world."""
        return frozenset(name for name, bounds in self.bounds.items() if bounds.is_act)

    @cached_property
    def sees_pictures(self) -> bool:
        """Whether each of its models can look at a picture."""
        models = filter(None, (self.model, self.fallback, self.composer))
        return all(model.spec.sees_pictures for model in models)

    @property
    def time_budget(self) -> float | None:
        if self.policy.time_budget_ms:
            return self.policy.time_budget_ms / 1000
        return None

    def open(self, call: AgentCall, ctx: RunContext) -> Thread:
        """Returns the conversation that this agent's model sees: its prompt, its own earlier turns, the request."""
        turn = ctx.turn
        system = self.prompt.suffix(turn.dynamic)
        if self.prompt.prefix:
            system = f"{self.prompt.prefix}\n\n{system}"
        # The prompt names the deck's limit, and its prefix has to stay the same for the provider's cache.
        if turn.cap != turn.settings.cap and self.card.id == turn.settings.orchestrator:
            system += f"\nIn this turn the limit is another: call at most {turn.cap} tools."
        if call.prior_context:
            system += f"\nFrom earlier in the conversation: {call.prior_context}"
        for name, value in call.fields.items():
            system += f"\n{name}: {value}"
        if self.prompt.closed:
            return [system_text(system), human_text(call.query)]
        is_lead = bool(self.card.sub_agents) or ctx.path == self.card.id
        reader = "" if is_lead else self.card.id
        return [
            system_text(system + turn.memory.suffix(reader)),
            *messages_of(turn.memory.history(reader)),
            human_message(call.query, ctx.pictures) if turn.pictures else human_text(call.query),
        ]

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        """Runs a sub-agent: calls its model and its tools until the model has nothing more to call."""
        thread = self.open(call, ctx)
        turn = ctx.turn
        results: list[tuple[ToolCall, ToolResult]] = []
        hand_over: AgentCall | None = None
        voice = self._voice()
        news = 1
        while True:
            hear = None if ctx.slot is None else self._listener(ctx, bool(results))
            reply = await call_with_fallback(
                voice, thread, ctx, agent=self.card.id, purpose="work", hear=hear, news=news
            )
            if self._is_void(reply):
                reply = await self._ask_again(reply, voice, thread, ctx, "work", results)
            own_calls = reply.calls
            if self.sub_cards:
                own_calls, hand_over = self._split_calls(reply, call, hand_over)
            if not own_calls:
                outcome = outcome_of_reply(
                    reply,
                    results,
                    thread,
                    self.contract,
                    call,
                    shown=turn.locale.sentences.shown,
                    tools=self.tools,
                    over=hand_over,
                )
                if self.acts:
                    outcome = as_it_became(outcome, call, results, ctx)
                return outcome
            ctx.ledger.before_tools(len(own_calls))
            thread.append(reply.message)
            tool_runs = await self.call_tools(own_calls, ctx)
            for tool_call, (message, result) in zip(own_calls, tool_runs, strict=True):
                thread.append(message)
                results.append((tool_call, result))
                # no second model is shown what a foreign principal's reply has cost the first
                if result.fault == "principal_mismatch":
                    voice.may_fall_back = False
            if self.sub_cards:
                for peer in reply.calls:
                    if peer not in own_calls:
                        thread.append(tool_text(NEXT, peer["id"] or ""))
            pictures = shown_pictures(tool_runs)
            thread += pictures
            news = len(tool_runs) + len(pictures)

    async def decide(
        self, thread: Thread, call: AgentCall, ctx: RunContext, *, live: bool = True
    ) -> Decision:
        """Makes the routing call. Its text goes to the user at once; one that calls without text
        gets the card's preamble.

        Not `live`, the text waits until a sub-agent is called, and a text beside which none is called is not shown.
        """
        speech = Preamble(ctx, self.card.preamble, call.query)
        waiting: list[str] = []

        def hear(piece: str, tool: str = "", /) -> None:
            nonlocal live
            if piece:
                speech.say(piece) if live else waiting.append(piece)
                return
            live = live or not tool or tool in self.sub_cards
            if live and waiting:
                speech.say("".join(waiting))
            if live:
                speech.precedes_calls()
            if live and not speech.begun:
                speech.begun = True
                ctx.emit(_text(channel="lead", text=speech.line(), synthetic=True))

        try:
            reply = await call_with_fallback(
                self._lead(ctx), thread, ctx, agent=self.card.id, purpose="decide", hear=hear
            )
            decision = await self._read(reply, call, thread, ctx)
            # its first call was one of its own tools
            if decision.asks and not live:
                hear("")
            if decision.calls:
                speech.precedes_calls()
            else:
                speech.is_the_answer()
        finally:
            speech.end()
        return decision

    async def decide_again(self, thread: Thread, call: AgentCall, ctx: RunContext) -> Decision:
        """Makes the routing call once more; the user reads nothing of it."""
        reply = await call_with_fallback(
            self._lead(ctx), thread, ctx, agent=self.card.id, purpose="decide"
        )
        return await self._read(reply, call, thread, ctx)

    async def compose(
        self, thread: Thread, call: AgentCall, ctx: RunContext, *, live: bool, news: int
    ) -> Decision:
        """Makes the composing call. Its text is the answer: streamed when `live`, otherwise held back (decisions 8)."""
        speech = Speech(ctx)
        hear = speech.say if live else None
        try:
            reply = await call_with_fallback(
                self._lead(ctx, composes=True),
                thread,
                ctx,
                agent=self.card.id,
                purpose="compose",
                hear=hear,
                news=news,
            )
        finally:
            speech.end()
        return await self._read(reply, call, thread, ctx, "compose")

    async def tool_messages(self, decision: Decision, fan: FanOut, ctx: RunContext) -> Thread:
        """Returns the model's message with its calls, then exactly one tool message for each call id."""
        reword = ctx.turn.locale.reservation
        texts: dict[str, str] = {}
        failed_ids: set[str] = set()
        for outcome in fan.outcomes:
            request = ""
            if isinstance(outcome, Failure):
                failed_ids.add(outcome.call_id)
                request = ctx.turn.words_asked(outcome.call_id)
            texts[outcome.call_id] = tell(
                outcome,
                with_components=True,
                reword=reword,
                request=request,
                label=ctx.turn.label_of(outcome.agent),
            )
        for ask in fan.dropped:
            texts[ask.call_id] = tell_dropped(ctx.turn.label_of(ask.agent))
            failed_ids.add(ask.call_id)
        for ask in decision.set_aside:
            texts[ask.call_id] = SET_ASIDE
        thread: Thread = [decision.reply.message]
        for call_id, text in texts.items():
            thread.append(tool_text(text, call_id, failed=call_id in failed_ids))
        if decision.own:
            tool_runs = await self.call_tools(decision.own, ctx)
            thread += [message for message, _ in tool_runs]
            thread += shown_pictures(tool_runs)
        return thread

    def _is_void(self, reply: ModelReply) -> bool:
        """Whether a reply makes calls and none of them can be made: tools that do not exist,
        arguments nobody can read."""
        calls = reply.calls
        for call in calls:
            exists = call["name"] in self.tools or call["name"] in self.sub_cards
            if exists and UNREAD not in call["args"]:
                return False
        return bool(calls)

    async def _ask_again(
        self,
        reply: ModelReply,
        voice: Voice,
        thread: Thread,
        ctx: RunContext,
        purpose: Purpose,
        results: list[tuple[ToolCall, ToolResult]],
    ) -> ModelReply:
        """Tells the model in its thread that none of its calls was made, and asks again; adds to the results.

        After BORNE such replies in a row the next one counts for nothing: it has neither text nor calls.
        """
        for attempts_left in range(BORNE, -1, -1):
            ctx.ledger.before_tools(len(reply.calls))
            calls: list[ToolCall] = []
            for call in reply.calls:
                # an id may come again, and an endpoint takes each one once
                calls.append(ToolCall({**call, "id": f"{call['id']}-void-{len(thread)}"}))
            tool_runs = await self.call_tools(calls, ctx)
            answers = [message for message, _ in tool_runs]
            thread += [with_calls(reply.message, calls), *answers]
            results += zip(calls, [result for _, result in tool_runs], strict=True)
            if not attempts_left:
                break
            reply = await call_with_fallback(
                voice, thread, ctx, agent=self.card.id, purpose=purpose, news=len(answers)
            )
            if not self._is_void(reply):
                return reply
        return replace(reply, message=AIMessage(""), text="")

    def _split_calls(
        self, reply: ModelReply, call: AgentCall, hand_over: AgentCall | None
    ) -> tuple[list[ToolCall], AgentCall | None]:
        """Returns the calls of its own tools, and the call of the first peer it named: a swarm
        hands over to that one."""
        own_calls: list[ToolCall] = []
        for tool_call in reply.calls:
            card = self.sub_cards.get(tool_call["name"])
            if card is None or UNREAD in tool_call["args"]:
                own_calls.append(tool_call)
            elif hand_over is None:
                hand_over = read_call(tool_call, card, tool_call["id"] or "", call.query)
        return own_calls, hand_over

    def _listener(self, ctx: RunContext, looked_up: bool) -> Hear | None:
        """Returns what passes its words to the user; None before its tools were called, and where
        its answer is checked whole."""
        if ctx.slot is None or self.contract.strict or (self.tools and not looked_up):
            return None
        hear = ctx.slot(ctx.path)
        if hear is None or not self.sub_cards:
            return hear
        # What it says before it hands over stands; the name of a call would have the words taken back.
        return lambda piece, _="": hear(piece) if piece else None

    def _voice(self, limit: float | None = None) -> Voice:
        patience = self.policy.model_time_ms / 1000 if self.policy.model_time_ms else None
        return Voice(self.model, self.fallback, patience, limit)

    def _lead(self, ctx: RunContext, *, composes: bool = False) -> Voice:
        """Returns the orchestrator's voice: each call has the deck's limit, the fallback has one
        attempt in the turn. The cheaper model composes, where there is one."""
        turn = ctx.turn
        if turn.voice is None:
            turn.voice = self._voice(turn.settings.model_call_budget_ms / 1000)
        # Once the fallback speaks, the model that failed is not asked to compose either.
        if composes and self.composer is not None and turn.voice.model is self.model:
            turn.voice = replace(turn.voice, model=self.composer)
        return turn.voice

    async def _read(
        self,
        reply: ModelReply,
        call: AgentCall,
        thread: Thread,
        ctx: RunContext,
        purpose: Purpose = "decide",
    ) -> Decision:
        if self._is_void(reply):
            reply = await self._ask_again(reply, self._lead(ctx), thread, ctx, purpose, [])
        # With calls in it a cut reply is not what the user reads.
        ctx.turn.was_cut_off = reply.truncated and not reply.calls
        if ctx.turn.was_cut_off and reply.text:
            reply = replace(reply, text=f"{reply.text}\n\n{ctx.turn.locale.reservation(CUT)}")
        asks: list[AgentCall] = []
        own_calls: list[ToolCall] = []
        for tool_call in reply.calls:
            card = self.sub_cards.get(tool_call["name"])
            # what cannot be called is run as a tool of its own: its message says why
            if card is None or UNREAD in tool_call["args"]:
                own_calls.append(tool_call)
            else:
                asks.append(read_call(tool_call, card, tool_call["id"] or "", call.query))
        return Decision(reply, tuple(asks), tuple(own_calls))

    async def call_tools(
        self, calls: Sequence[ToolCall], ctx: RunContext, owners: Mapping[str, str] | None = None
    ) -> list[ToolRun]:
        """Runs calls of its own tools, in the name of their `owners`; a message and a result for each.

        Those that act come first, one after the other, and all others after them at once: what is looked up beside
        an act shows what the act left, also where its user said yes a day later.
        """
        if self.acts:
            tool_runs = await self._run_acts_first(calls, ctx, owners)
        else:
            tool_runs = await self._run_tools(calls, ctx, owners)
        if self.sees_pictures:
            return tool_runs
        return [_in_words(message, result) for message, result in tool_runs]

    async def _run_acts_first(
        self, calls: Sequence[ToolCall], ctx: RunContext, owners: Mapping[str, str] | None
    ) -> list[ToolRun]:
        run_by_place: dict[int, ToolRun] = {}
        for is_act in (True, False):
            places = [n for n, call in enumerate(calls) if (call["name"] in self.acts) is is_act]
            runs = await self._run_tools([calls[place] for place in places], ctx, owners)
            run_by_place.update(zip(places, runs, strict=True))
        return [run_by_place[place] for place in range(len(calls))]

    async def _run_tools(
        self, calls: Sequence[ToolCall], ctx: RunContext, owners: Mapping[str, str] | None
    ) -> list[ToolRun]:
        """Runs calls at the same time; one that waits for the user does not cut off the others."""
        owners = owners or {}
        runs: list[Coroutine[Any, Any, ToolRun]] = []
        for call in calls:
            owner = owners.get(call["name"], self.card.id)
            runs.append(call_tool(call, self.tools, owner, ctx, self.new_tools, self.bounds))
        return await together(runs)


def shown_pictures(runs: Sequence[ToolRun]) -> list[HumanMessage]:
    """The message that shows a model what its tools returned as pictures; none where they returned none.

    Endpoints take a picture in a message of a user alone. It stands after all results of the calls.
    """
    pictures: list[Picture] = []
    for _, result in runs:
        pictures += result.pictures
    if not pictures:
        return []
    return [human_message(SHOWN_BY_TOOLS, pictures)]


def _in_words(message: ToolMessage, result: ToolResult) -> ToolRun:
    """The same for a model that takes no pictures: each is named, and that it is not shown is said."""
    if not result.pictures:
        return message, result
    result = result.without_pictures()
    return tool_text(result.text, message.tool_call_id, name=message.name), result
