"""Builds the offline stand-in's reply: as router, worker, composer or structured job, by the tools
and messages it was given."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolCall

from kit.core.card import PlanExample
from kit.core.language.retry import retries
from kit.core.language.small_talk import small_talk
from kit.core.language.words import content_words
from kit.core.outcome import NO_ANSWER
from kit.models.offline import composition, english, json_answer
from kit.models.offline.arguments import Source, fill, unknown_name
from kit.models.offline.conversation import Conversation, Tool, text_of
from kit.models.offline.executor import executor_turn, plays_executor
from kit.models.offline.json_schema import fillable, properties_of
from kit.models.offline.phrases import ENGLISH, phrases_of
from kit.models.offline.planner import planner_turn, plays_planner
from kit.models.offline.routing import (
    FITS,
    Decision,
    Part,
    Routes,
    Situation,
    SmallTalk,
    Unfit,
    decide,
    is_sentence,
    points_back,
)
from kit.models.offline.similarity import index

_ENTITY = re.compile(
    r"""(?<![.!?]\s)(?<!^)\b[A-Z][\w'&-]*(?:\s+[A-Z][\w'&-]*)*
        |["“][^"”]{2,60}["”]|\b(?=[\w-]*\d)[A-Za-z]+-?[\w-]*\d[\w-]*\b""",
    re.X,
)
_ORDER = re.compile(
    r"\b(?:you|your)\b|^\W*(?:always|never|do|don't|use|call|answer|say|when|if|keep|only|be|write|give)\b",
    re.I,
)


EARLIER = "From earlier in the conversation:"
"""How a sub-agent's prompt tells what was said to others."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What is said, and what is called after it."""

    text: str
    calls: tuple[ToolCall, ...] = ()


def reply(
    talk: Conversation,
    tools: Sequence[Tool],
    choice: str | None,
    plan_examples: Sequence[PlanExample] = (),
) -> Reply:
    """Answers a conversation. `choice` is a tool's name, "any" (some tool must be called), "none" or None (free)."""
    if plays_planner(tools):
        return _plan(planner_turn(talk, plan_examples), talk, tools)
    if plays_executor(tools):
        return _plan(executor_turn(talk.messages), talk, tools)
    choice_tool = next((tool for tool in tools if tool.name == choice), None)
    if choice == "any" and len(tools) == 1:
        choice_tool = tools[0]
    if choice_tool is not None and not choice_tool.routes:
        return _make_calls(talk, "", [(choice_tool, _job(talk, choice_tool))])
    routers: list[Tool] = []
    for tool in tools:
        if tool.routes:
            routers.append(tool)
    if routers and talk.role is not None:
        return _answer_in_swarm(
            talk, [tool for tool in tools if not tool.routes], routers, talk.role
        )
    if routers and talk.in_turns:
        return _next(talk, routers)
    if talk.results and (talk.has_results or not tools):
        return Reply(_compose(talk, bool(routers), tools))
    if choice == "none" or not tools:
        return Reply(_unaided(talk))
    if routers:
        return _route(
            talk,
            [choice_tool] if choice_tool else routers,
            must=choice == "any" or choice_tool is not None,
        )
    return _use_tools(talk, tools, must=choice == "any")


def _plan(
    turn: str | Sequence[tuple[str, dict[str, Any]]], talk: Conversation, tools: Sequence[Tool]
) -> Reply:
    by_name = {tool.name: tool for tool in tools}
    if isinstance(turn, str):
        return Reply(turn)
    return _make_calls(talk, "", [(by_name[name], args) for name, args in turn])


def _job(talk: Conversation, tool: Tool) -> dict[str, Any]:
    texts = [text_of(message) for message in talk.before] + [result.text for result in talk.results]
    properties = properties_of(tool.schema)
    if list(properties) == ["query"] and talk.before:
        return {
            "query": text_of(talk.before[-1])
        }  # whose words are whose it cannot tell: nobody misses any
    if list(properties) == ["prior_context"] and (
        context := _name_entities(talk, len(talk.before))
    ):
        return {"prior_context": context}
    return fill(
        tool.schema,
        Source(talk.request, "\n".join([talk.system, *texts])[-20_000:], is_form=True),
    )


def _compose(talk: Conversation, routing: bool, tools: Sequence[Tool]) -> str:
    schema = json_answer.requested_schema(talk.system)
    if schema is not None:
        return json_answer.build(
            schema,
            talk.request,
            talk.system,
            [result.text for result in talk.results if not result.failed],
        )
    if routing or any(result.tool.startswith("ask_") for result in talk.results):
        return composition.compose(
            talk.request, (*talk.results, *talk.left_out), phrases_of(talk.system)
        )
    found_none = talk.results and all(
        composition.UNMATCHED.match(result.text) for result in talk.results
    )
    if found_none and talk.may_pass and _may_be_about_anything(talk) and _is_foreign(talk, tools):
        return NO_ANSWER
    return composition.answer(talk.request, talk.results)


def _may_be_about_anything(talk: Conversation) -> bool:
    """Whether a request is an open question or a statement, and no wish to find, to buy or to compare something.

    A few words that are no sentence are the name of something, which may well be missing here.
    """
    if english.OPEN.match(talk.request):
        return True
    return is_sentence(talk.request) and not english.SEEKS.search(talk.request)


def leans(talk: Conversation) -> bool:
    """Whether a request leans on an earlier turn, of this agent or of another that is told of."""
    earlier = talk.before or talk.ids or talk.referent or EARLIER in talk.system
    return bool(earlier) and points_back(talk.request, talk.last_reply)


def _is_foreign(talk: Conversation, tools: Sequence[Tool]) -> bool:
    """Whether an opening request is like nothing these tools are for, and most of its words are none of theirs."""
    if not tools or talk.picture_text or leans(talk):
        return False
    documents = tuple((tool.label, tool.description) for tool in tools)
    asked = content_words(talk.request) - english.DEGREES
    own = content_words(" ".join(f"{label} {description}" for label, description in documents))
    return (
        2 * len(asked & own) < max(1, len(asked))
        and float(index(documents).score(talk.request).max()) < FITS
    )


def _unaided(talk: Conversation) -> str:
    """Without tools: small talk, or what the text given says about the request."""
    schema = json_answer.requested_schema(talk.system)
    if schema is not None:
        return json_answer.build(schema, talk.request, talk.system, ())
    if small_talk(talk.request, talk.last_reply):
        return composition.chat(talk.request, phrases_of(talk.system))
    if not talk.request:
        return _puzzled(talk)
    facts: list[str] = []
    for line in composition.sentences(talk.system):
        if not _ORDER.search(line):
            facts.append(line)
    own: list[str] = []
    for message in talk.before:
        if isinstance(message, HumanMessage):
            own.append(text_of(message))
    others: list[str] = []
    for message in talk.before:
        if not isinstance(message, HumanMessage):
            others.append(text_of(message))
    return composition.from_context(talk.request, "\n".join([*facts, *others]), "\n".join(own))


def _route(talk: Conversation, tools: Sequence[Tool], *, must: bool) -> Reply:
    if not talk.request and not must:
        return Reply(_puzzled(talk))
    documents = tuple((tool.label, tool.description) for tool in tools)
    in_play = _in_play(talk, tools, documents)
    decision = _decide(talk, Situation(talk.request, documents, in_play, talk.last_reply), tools)
    if not leans(talk) and english.WORDLESS.match(talk.request):
        decision = Unfit()
    if isinstance(decision, SmallTalk) and not must:
        return Reply(composition.chat(talk.request, phrases_of(talk.system)))
    if not isinstance(decision, Routes):
        default = next((i for i, tool in enumerate(tools) if tool.name == talk.no_fit), None)
        if default is None and must:
            default = int(index(documents).score(talk.request).argmax())
        if default is None or (isinstance(decision, SmallTalk) and not must):
            return Reply(
                composition.outside([tool.label for tool in tools], phrases_of(talk.system))
            )
        decision = Routes((Part(default, talk.request, 0.0),), 1)
    calls: list[tuple[Tool, dict[str, Any]]] = []
    for part in decision.parts:
        calls.append(
            (
                tools[part.tool],
                _routing_args(talk, tools[part.tool], part, decision.intents, in_play),
            )
        )
    if phrases_of(talk.system) is not ENGLISH:
        return _make_calls(talk, "", calls)  # the line of the card or of the language is said
    preamble = composition.preamble([tools[part.tool].label for part in decision.parts])
    return _make_calls(talk, preamble, calls)


def _decide(talk: Conversation, situation: Situation, tools: Sequence[Tool]) -> Decision:
    """An open question is tried again, else the words decide. A picture counts where they say
    nothing or fit nothing: by the prompt's rule for it, else by likeness."""
    parts = tuple(
        Part(i, talk.request, 1.0) for i, tool in enumerate(tools) if tool.name in talk.unanswered
    )
    if parts and retries(talk.request):
        return Routes(parts[: talk.most], len(parts))
    decision = decide(situation, talk.most)
    if not talk.picture_text or (content_words(talk.typed_words) and isinstance(decision, Routes)):
        return decision
    by_rule = next((i for i, tool in enumerate(tools) if tool.name == talk.picture_tool), None)
    if by_rule is not None:
        return Routes((Part(by_rule, talk.request, 1.0),), 1)
    both = decide(replace(situation, request=f"{talk.typed_words} {talk.picture}"), talk.most)
    if not isinstance(both, Routes):
        return decision
    best = max(both.parts, key=lambda part: part.score)
    return Routes((Part(best.tool, talk.request, best.score),), 1)


def _puzzled(talk: Conversation) -> str:
    if talk.has_picture:
        return "What does the picture show, and what would you like to know?"
    return "I received no text. What can I help you with?"


def _next(talk: Conversation, tools: Sequence[Tool]) -> Reply:
    """The first tool not called yet, one at a time; the answer when none is left."""
    whole = _route(talk, tools, must=False)
    open_calls: list[ToolCall] = []
    for call in whole.calls:
        if call["name"] not in talk.calls.values():
            open_calls.append(call)
    if open_calls:
        return Reply("" if talk.calls else whole.text, (open_calls[0],))
    if talk.calls:
        return Reply(composition.compose(talk.request, talk.all_results, phrases_of(talk.system)))
    return whole


def _answer_in_swarm(
    talk: Conversation, own: Sequence[Tool], peers: Sequence[Tool], role: str
) -> Reply:
    """A member of a swarm: its own part by its own tools, and then whoever else the request is for takes over."""
    decision = decide(
        Situation(
            talk.request, (("this", role), *((tool.label, tool.description) for tool in peers))
        ),
        talk.most,
    )
    if isinstance(decision, Routes):
        parts = decision.parts
    else:
        parts = (Part(0, talk.request, 0.0),)
    others = [(peers[part.tool - 1], part.text) for part in parts if part.tool]
    over = [
        (tool, {"query": text, "intent_count": 1})
        for tool, text in others
        if tool.name not in talk.previous_speakers
    ][:1]
    mine = next((part.text for part in parts if part.tool == 0), None)
    if talk.has_results:
        return _make_calls(talk, composition.answer(mine or talk.request, talk.results), over)
    if mine is None:
        return _make_calls(talk, "", over)
    part = Conversation([*talk.messages[: talk.asked_at], HumanMessage(mine)])
    if own:
        own_reply = _use_tools(part, own, must=False)
    else:
        own_reply = Reply(_unaided(part))
    if own_reply.calls:
        return own_reply
    return _make_calls(talk, own_reply.text, over)


def _in_play(
    talk: Conversation, tools: Sequence[Tool], documents: tuple[tuple[str, str], ...]
) -> frozenset[int]:
    """Positions of the tools in play: as told, else as the last few requests would have been routed."""
    if talk.in_play is not None:
        numbers: set[int] = set()
        for i, tool in enumerate(tools):
            if tool.name in talk.in_play:
                numbers.add(i)
        return frozenset(numbers)
    in_play: frozenset[int] = frozenset()
    last_reply = ""
    for message in talk.before[-8:]:
        if isinstance(message, HumanMessage):
            decision = decide(
                Situation(text_of(message), documents, in_play, last_reply), talk.most
            )
            if isinstance(decision, Routes):
                in_play = frozenset(part.tool for part in decision.parts)
        elif isinstance(message, AIMessage):
            last_reply = text_of(message)
    return in_play


def _routing_args(
    talk: Conversation, tool: Tool, part: Part, intents: int, in_play: frozenset[int]
) -> dict[str, Any]:
    args: dict[str, Any] = {"query": part.text, "intent_count": intents}
    properties = properties_of(tool.schema)
    one = talk.referent
    if "prior_context" in properties and (
        one is not None or (in_play and part.tool not in in_play)
    ):
        if one is not None:
            referent = "The user means {} ({} {}).".format(*one)
        else:
            referent = None
        if context := " ".join(filter(None, [referent, _name_entities(talk)])):
            args["prior_context"] = context
    extra = {
        name: spec
        for name, spec in properties.items()
        if name not in ("query", "intent_count", "prior_context")
    }
    if extra:
        always: set[str] = set()
        for name, spec in extra.items():
            if spec.get("enum") or "summary" in name:
                always.add(name)
        required = [
            name for name in extra if name in always or name in (tool.schema.get("required") or ())
        ]
        args |= fill(
            {"properties": extra, "required": required},
            Source(part.text, talk.system),
        )
    return args


def _name_entities(talk: Conversation, last: int = 4) -> str | None:
    """One sentence of what the last messages named; None when they named nothing."""
    lines: list[str] = []
    for message in reversed(talk.before[-last:]):
        lines.append(text_of(message)[:1000])
    entities: list[Any] = []
    for line in lines:
        for match in _ENTITY.findall(line):
            entities.append(match.strip(" \"“”'"))
    unique = [name for name in dict.fromkeys(entities) if len(name) > 2][:8]
    if unique:
        return f"Earlier turns named {', '.join(unique)}."
    return None


def _use_tools(talk: Conversation, tools: Sequence[Tool], *, must: bool) -> Reply:
    if not must and (not talk.request or small_talk(talk.request, talk.last_reply)):
        return Reply(
            composition.chat(talk.request, phrases_of(talk.system))
            if talk.request
            else _puzzled(talk)
        )
    general = english.GENERAL.match(talk.request) is not None and _is_foreign(talk, tools)
    wordless = not leans(talk) and english.WORDLESS.match(talk.request)
    no_lookup = (english.TASK, english.SUM, english.SELF)
    beside = any(pattern.search(talk.request) for pattern in no_lookup)
    if talk.may_pass and not must and (general or wordless or beside):
        return Reply(NO_ANSWER)
    request = _with_antecedent(talk)
    able = [tool for tool in tools if fillable(tool.schema)] or (list(tools) if must else [])
    if not able:
        return Reply(_unaided(talk))
    documents = tuple((tool.label, tool.description) for tool in able)
    decision = decide(Situation(request, documents), 2)
    if isinstance(decision, SmallTalk | Unfit):
        decision = Routes((Part(int(index(documents).score(request).argmax()), request, 0.0),), 1)
    selection: list[tuple[Tool, str]] = []
    for part in decision.parts:
        selection.append((able[part.tool], part.text))
    calls: list[tuple[Tool, dict[str, Any]]] = []
    for tool, text in selection:
        arguments = fill(tool.schema, _source(tool, text, talk))
        unknown = unknown_name(tool.schema, arguments, text)
        if unknown is not None and not must:
            return Reply(phrases_of(talk.system).unknown.format(name=unknown))
        calls.append((tool, arguments))
    return _make_calls(talk, "", calls)


def _source(tool: Tool, text: str, talk: Conversation) -> Source:
    about = frozenset(word.rstrip("s") for word in tool.label.split())
    return Source(text, about=about, before=f"{talk.last_request}. ")


def _with_antecedent(talk: Conversation) -> str:
    """The request, with what it points at in front when it cannot stand alone: its picture, or the request before."""
    if (one := talk.referent) is not None:
        return f'"{one[0]}". {talk.request}'
    if not talk.ids and not points_back(talk.request, talk.last_reply):
        return talk.request
    if talk.picture_text:
        return f"{talk.picture_text}. {talk.request}"
    if talk.ids:
        return f'"{" ".join(talk.ids)}". {talk.request}'
    if talk.open_question:
        return talk.open_question
    if talk.last_request:
        return f"{talk.last_request}. {talk.request}"
    return talk.request


def _make_calls(
    talk: Conversation, text: str, calls: Sequence[tuple[Tool, dict[str, Any]]]
) -> Reply:
    seed = blake2s(
        f"{len(talk.messages)}\n{talk.system[:2000]}\n{talk.request}".encode(errors="replace")
    )
    result: list[ToolCall] = []
    for n, (tool, args) in enumerate(calls):
        own = seed.copy()
        own.update(
            f"{n}{tool.name}{json.dumps(args, sort_keys=True, default=str)}".encode(
                errors="replace"
            )
        )
        result.append(
            ToolCall(name=tool.name, args=args, id=f"call_{own.hexdigest()[:16]}", type="tool_call")
        )
    return Reply(text, tuple(result))
