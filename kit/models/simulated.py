"""Known-truth models: they answer right, and err, take time and spend tokens by seeded laws, so
that a bench can be checked.

A simulated model is no LLM and its figures are nobody's results: its name, its answers and every
trace say "simulated". What it should do is the truth of the case at hand (`use_truth`); without one
it is what the offline stand-in would do. Each draw is fixed by seed, case and place of the call in
the turn, never by the order in which calls arrive.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool

from kit.core.language.words import spoken
from kit.core.model import ModelSpec
from kit.core.simulation import Law, Truth
from kit.models.asynchronous import AsyncChatModel, AsyncModel
from kit.models.message import token_count
from kit.models.offline import json_answer
from kit.models.offline.arguments import fill
from kit.models.offline.composition import compose
from kit.models.offline.conversation import Conversation, Tool, tool_of
from kit.models.offline.extraction import Source
from kit.models.offline.json_schema import properties_of
from kit.models.offline.reply import Request
from kit.models.offline.reply import reply as stand_in
from kit.models.seeded_draws import Draws, canary_figure, draws

NAME = "simulated"
PREAMBLE = "Simulated: let me look into that."
NOTHING = "Simulated answer: there is nothing to look up."
REFUSAL = "Simulated: I can't help with that."
GARBLED = "simulated: unreadable"
"""Arguments that no reader can make sense of."""
_CALL_MADE = re.compile(r'ask_([\w-]+) with "')
_truth: ContextVar[Truth | None] = ContextVar("truth", default=None)


@contextmanager
def use_truth(truth: Truth) -> Generator[None]:
    """Makes this the case of every turn that is started inside; tasks inherit it."""
    token = _truth.set(truth)
    try:
        yield
    finally:
        _truth.reset(token)


def case_at_hand() -> str:
    """Name of the case this task is about; empty when nobody said."""
    truth = _truth.get()
    if truth is not None:
        return truth.case
    return ""


_Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""


@dataclass(slots=True)
class _Reply:
    """A reply before it is put into a message."""

    text: str = ""
    calls: list[_Call] = field(default_factory=list[_Call])
    unreadable: tuple[str, ...] = ()
    """Tools of calls whose arguments cannot be read."""
    refusal: bool = False


class SimulatedModel(AsyncChatModel):
    """A chat model that behaves by a `Law`. It is awaited only; its latency is a sleep of the event loop."""

    name: str | None = NAME
    law: Law = Law()
    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return NAME

    @property
    def spec(self) -> ModelSpec:
        """What the kit knows of it; its key holds the word "simulated" whatever its name."""
        name = str(self.name)
        return ModelSpec(
            key=name if NAME in name else f"{NAME} {name}",
            provider=NAME,
            law=self.law,
            seed=self.seed,
        )

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools; dicts in OpenAI format are taken as they are."""
        specs = [convert_to_openai_tool(tool) for tool in tools]
        return cast("Runnable[LanguageModelInput, AIMessage]", Simulated(self, specs, tool_choice))

    def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        return Simulated(self, (), None).astream(input, config, **kwargs)

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        message = await Simulated(self, (), None).ainvoke(messages)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Simulated(AsyncModel):
    """The model with its tools. `astream` takes the call's `place` in its turn; without one the
    last message stands for it."""

    def __init__(
        self, model: SimulatedModel, tools: Sequence[Mapping[str, Any]], choice: str | None
    ):
        self._model = model
        self._choice = choice
        self._tools: list[Tool] = [tool_of(spec) for spec in tools]
        self._asks = {
            tool.name.removeprefix("ask_"): tool.name for tool in self._tools if tool.routes
        }
        self._own = {tool.name: tool for tool in self._tools if not tool.routes}
        self._choice_tool = next((tool for tool in self._tools if tool.name == choice), None)
        if tools:
            self._weight = len(json.dumps(list(tools)))
        else:
            self._weight = 0

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """The first word after its share of the latency, the rest at its end."""
        messages = cast(
            "list[BaseMessage]", input if isinstance(input, list) else [HumanMessage(str(input))]
        )
        talk = Conversation(messages)
        truth = _truth.get()
        law = self._model.law
        place = str(kwargs.get("place") or messages[-1].text)
        draw = draws(self._model.seed, talk.request if truth is None else truth.case, place)
        reply = self._reply(talk, truth, place, draw)
        seconds = round(law.latency.quantile(draw.latency), 6)
        await asyncio.sleep(seconds * law.first)
        head = reply.text.find(" ") + 1
        if head:
            yield AIMessageChunk(content=reply.text[:head])
        await asyncio.sleep(seconds * (1 - law.first))
        yield self._rest(messages, reply, reply.text[head:], draw)

    def _rest(
        self, messages: Sequence[BaseMessage], reply: _Reply, text: str, draw: Draws
    ) -> AIMessageChunk:
        characters = self._weight
        for message in messages:
            characters += len(message.text)
        input_tokens = characters // 4  # about four characters a token
        output_tokens = round(self._model.law.tokens.quantile(draw.tokens))
        arguments = [(name, json.dumps(args)) for name, args in reply.calls]
        arguments += [(name, GARBLED) for name in reply.unreadable]
        chunks: list[ToolCallChunk] = []
        for n, (name, args) in enumerate(arguments):
            call_id = f"sim-{draw.mark:08x}-{n}"
            chunks.append(tool_call_chunk(name=name, args=args, id=call_id, index=n))
        return AIMessageChunk(
            content=text,
            tool_call_chunks=chunks,
            additional_kwargs={"refusal": REFUSAL} if reply.refusal else {},
            usage_metadata=token_count(input_tokens, output_tokens),
            response_metadata={"model_name": str(self._model.name)},
            chunk_position="last",
        )

    def _reply(self, talk: Conversation, truth: Truth | None, place: str, draw: Draws) -> _Reply:
        if truth is None:
            answer = stand_in(Request(talk, self._tools, self._choice))
            reply = _Reply(answer.text, [(call["name"], call["args"]) for call in answer.calls])
        elif self._choice_tool is not None:
            return self._job(self._choice_tool, talk, truth, draw)
        elif talk.role:
            reply = self._answer_in_swarm(talk, truth, _agent(place), draw)
        elif self._asks:
            reply = self._orchestrate(talk, truth, draw)
        else:
            reply = self._answer_with_tools(talk, truth, _agent(place))
        if not reply.calls:
            reply.refusal = not self._asks and draw.refuse < self._model.law.refusal
            if reply.refusal:
                return _Reply(refusal=True)
            return reply
        return _add_mistakes(reply, talk, self._asks, self._model.law, draw)

    def _orchestrate(self, talk: Conversation, truth: Truth, draw: Draws) -> _Reply:
        """An orchestrator calls for every part, one at a time where it is told to, and then puts
        the results together."""
        calls: list[_Call] = []
        for part in truth.parts:
            if part.agent in self._asks:
                calls.append((self._asks[part.agent], {"query": part.query}))
        if talk.in_turns:
            forgets = bool(talk.calls) and draw.drop < self._model.law.drop
            open_calls = [call for call in calls if call[0] not in talk.calls.values()]
            calls = [] if forgets else open_calls[:1]
        if talk.results and not (talk.in_turns and calls):
            return _Reply(compose(talk.results))
        if not calls:
            return _Reply(NOTHING)
        # The preamble was said with the first call of the turn.
        return _Reply("" if talk.results else PREAMBLE, calls)

    def _answer_in_swarm(self, talk: Conversation, truth: Truth, agent: str, draw: Draws) -> _Reply:
        """A member of a swarm answers its part and hands the conversation to the next one whose part is open."""
        open_parts = [
            part
            for part in truth.parts
            if part.agent in self._asks and self._asks[part.agent] not in talk.previous_speakers
        ]
        handover: list[_Call] = []
        if open_parts:
            next_part = open_parts[0]
            handover.append((self._asks[next_part.agent], {"query": next_part.query}))
        if not any(part.agent == agent for part in truth.parts):
            return _Reply("" if handover else NOTHING, handover)
        reply = self._answer_with_tools(talk, truth, agent)
        if reply.calls or draw.drop < self._model.law.drop:
            return reply
        return _Reply(reply.text, handover)

    def _answer_with_tools(self, talk: Conversation, truth: Truth, agent: str) -> _Reply:
        """A specialist calls the tool its part needs and says what that told it; one agent for all
        calls those of every part."""
        mine = [part for part in truth.parts if part.agent == agent] or list(truth.parts)
        calls: dict[str, dict[str, Any]] = {}
        for part in mine:
            if part.tool in self._own:
                calls[part.tool] = _arguments(self._own[part.tool], part.query)
        if calls and not talk.results:
            return _Reply(calls=[(str(tool), args) for tool, args in calls.items()])
        good: dict[str, str] = {}
        for result in talk.results:
            if not result.failed:
                good[result.tool] = result.text
        known_by_heart = dict.fromkeys(part.agent for part in mine if part.tool not in calls)
        facts: list[str] = []
        for name in known_by_heart:
            facts.append(f"Simulated answer of {spoken(name)}: {canary_figure(truth.case, name)}.")
        facts += good.values()
        schema = json_answer.requested_schema(talk.system)
        if schema is not None:
            return _Reply(json_answer.build(schema, talk.request, talk.system, facts))
        return _Reply(" ".join(facts) or "Simulated answer: that is not available right now.")

    def _job(self, tool: Tool, talk: Conversation, truth: Truth, draw: Draws) -> _Reply:
        """A structured job: labels from the truth, everything else a word that says what it is."""
        args: dict[str, Any] = {}
        for name, spec in properties_of(tool.schema).items():
            if name == "labels":
                labels = [part.agent for part in truth.parts]
                if len(labels) > 1 and draw.drop < self._model.law.drop:
                    labels = _without(labels, draw)
                args[name] = labels
            elif name == "query" and spec.get("type") == "string":
                args[name] = _query_of_job(talk, truth)
            elif spec.get("type") == "string":
                args[name] = f"Simulated {name.replace('_', ' ')}."
        return _Reply(calls=[(tool.name, args)])


def _add_mistakes(
    reply: _Reply, talk: Conversation, asks: Mapping[str, str], law: Law, draw: Draws
) -> _Reply:
    """The calls of a reply with the law's mistakes in them, each with the count the model reports."""
    again = set[str]()
    if "<missing_calls>" in talk.system:
        again = set(_CALL_MADE.findall(talk.system))
    calls = reply.calls
    count = len(calls)
    if again:
        calls = [call for call in calls if call[0].removeprefix("ask_") not in again]
    if again and law.retry_drop is not None:
        chance = law.retry_drop
    else:
        chance = law.drop
    if count > 1 and calls and draw.drop < chance:
        calls = _without(calls, draw)
        count -= draw.report < law.under_report
    called = [name for name, _ in reply.calls]
    uncalled = [name for name in asks.values() if name not in called]
    if uncalled and draw.stray < law.stray:
        stray = uncalled[int(draw.choice * len(uncalled))]
        calls = [*calls, (stray, {"query": talk.request})]
    if not again and draw.over < law.over_trigger:
        count += 1
    count = max(count, len(calls))
    counted_calls: list[_Call] = []
    for name, args in calls:
        if name in asks.values():
            args = {**args, "intent_count": count}
        counted_calls.append((name, args))
    if not counted_calls or draw.garble >= law.malformed:
        return _Reply(reply.text, counted_calls)
    readable = _without(counted_calls, draw)
    unreadable = [name for name, args in counted_calls if (name, args) not in readable]
    return _Reply(reply.text, readable, tuple(unreadable))


def _agent(place: str) -> str:
    """Who is called, told by the place of the call: `orchestrator/1.2.rewards:1` is rewards."""
    return place.rpartition(":")[0].rpartition("/")[2].rpartition(".")[2]


def _arguments(tool: Tool, query: str) -> dict[str, Any]:
    """What a call asks: the part's words, or values out of them where the tool's schema wants others."""
    wanted = {*(tool.schema.get("required") or ())} - {"query"}
    if wanted:
        return fill(tool.schema, Source(query))
    return {"query": query}


def _query_of_job(talk: Conversation, truth: Truth) -> str:
    """What the user said for the agent the job names, else for the first."""
    for part in truth.parts:
        if f"specialist {part.agent};" in talk.request:
            return part.query
    if truth.parts:
        return truth.parts[0].query
    return talk.request


def _without(items: Sequence[Any], draw: Draws) -> list[Any]:
    """All but one of the items, the one the draw names."""
    left_out = int(draw.choice * len(items))
    rows: list[Any] = []
    for place, item in enumerate(items):
        if place != left_out:
            rows.append(item)
    return rows
