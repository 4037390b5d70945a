"""Builds the offline stand-in's reply, in the first of its modes that the tools and messages call for."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2s
from typing import Any

from langchain_core.messages import HumanMessage, ToolCall

from kit.core.card import PlanExample
from kit.core.language.clauses import clauses
from kit.core.language.retry import retries
from kit.core.language.small_talk import small_talk
from kit.core.language.words import content_words, spoken, words
from kit.core.outcome import NO_ANSWER
from kit.models.offline import composition, english, json_answer
from kit.models.offline.arguments import by_id, fill, fill_each, why_not
from kit.models.offline.conversation import Conversation, Tool, text_of
from kit.models.offline.executor import executor_turn, plays_executor
from kit.models.offline.extraction import Source, identifiers, name_entities, narrowing_of
from kit.models.offline.json_schema import fillable, properties_of
from kit.models.offline.phrases import ENGLISH
from kit.models.offline.planner import planner_turn, plays_planner
from kit.models.offline.routing import (
    Decision,
    Part,
    Routes,
    Situation,
    acts,
    asks_for_act,
    begins_act,
    decide,
    inquires,
    is_for_nobody,
    is_of_several,
    leans,
    names_nothing,
    points_back,
    why_not_act,
    with_questions_apart,
)
from kit.models.offline.similarity import Document, Index, index, speaks_of

_ORDER = re.compile(
    r"\b(?:you|your)\b|^\W*(?:always|never|do|don't|use|call|answer|say|when|if|keep|only|be|write|give)\b",
    re.I,
)
"""A sentence of a prompt that tells the model what to do."""
_PLAN_STEP = re.compile(r"ask_step_\d+")
NONE_FOUND = 0.5
"""How much less a request need be worded like what is asked elsewhere once no lookup has found anything for it."""
MOST_SUBJECTS = 2
"""Words of a follow-up that are looked for in what was found; longer ones are told in many ways."""
Call = tuple[str, dict[str, Any]]
"""The name of a tool to call, and its arguments."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What is said, and what is called after it."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """All that a reply is made from."""

    talk: Conversation
    tools: Sequence[Tool]
    choice: str | None
    """A tool's name, "any" (some tool must be called), "none" or None (free)."""
    plan_examples: Sequence[PlanExample] = ()
    requests: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Agent id -> the requests of its card; "" for the agent that speaks."""
    acts: frozenset[str] = frozenset()
    """The names of those tools that do something in the world."""
    topics: Mapping[str, str] = field(default_factory=dict[str, str])
    """Agent id -> what it can be asked about, for a person to read."""

    @property
    def own_requests(self) -> tuple[str, ...]:
        """What people ask the agent that speaks."""
        return self.requests.get("", ())

    @property
    def routers(self) -> list[Tool]:
        """The sub-agents."""
        return [tool for tool in self.tools if tool.routes]

    @property
    def forced(self) -> Tool | None:
        """The tool that must be called."""
        if self.choice == "any" and len(self.tools) == 1:
            return self.tools[0]
        return next((tool for tool in self.tools if tool.name == self.choice), None)

    @property
    def must_call(self) -> bool:
        return self.choice == "any" or self.forced is not None


def reply(request: Request) -> Reply:
    """Answers a conversation."""
    for mode in MODES:
        answer = mode(request)
        if answer is not None:
            return answer
    return _look_up(request)


def _plan(request: Request) -> Reply | None:
    """A planner's next calls or last words."""
    if not plays_planner(request.tools):
        return None
    return _moves(request, planner_turn(request.talk, request.plan_examples))


def _carry_out_step(request: Request) -> Reply | None:
    """The next call of an executor of a plan's step, or its last words."""
    if not plays_executor(request.tools):
        return None
    return _moves(request, executor_turn(request.talk.messages))


def _moves(request: Request, turn: str | Sequence[Call]) -> Reply:
    if isinstance(turn, str):
        return Reply(turn)
    return _make_calls(request.talk, "", turn)


def _chat(request: Request) -> Reply | None:
    """The answer to a message that asks for nothing."""
    talk = request.talk
    if request.must_call or talk.calls or talk.picture_text:
        return None
    if not talk.request and talk.has_picture:
        return Reply("What does the picture show, and what would you like to know?")
    if not talk.request:
        return Reply("I received no text. What can I help you with?")
    if small_talk(talk.request, talk.last_reply):
        return Reply(composition.chat(talk.request, talk.phrases))
    return None


def _fill_form(request: Request) -> Reply | None:
    """A structured job: the call of a tool that must be called and is no sub-agent."""
    form = request.forced
    if form is None or form.routes:
        return None
    talk = request.talk
    names = list(properties_of(form.schema))
    earlier = [text_of(message) for message in talk.history]
    entities = name_entities(earlier) if names == ["prior_context"] else None
    if entities:
        arguments: dict[str, Any] = {"prior_context": entities}
    elif names == ["query"] and earlier:
        # Whose words are whose it cannot tell: handed the whole message, nobody misses any.
        arguments = {"query": earlier[-1]}
    else:
        texts = [talk.system, *earlier, *(result.text for result in talk.results)]
        arguments = fill(
            form.schema, Source(talk.request, "\n".join(texts)[-20_000:], is_form=True)
        )
    return _make_calls(talk, "", [(form.name, arguments)])


def _classify(request: Request) -> Reply | None:
    """The labels of a classifier: the decision over tools, by what its prompt says of each label."""
    form = request.forced
    if form is None or form.routes or "labels" not in properties_of(form.schema):
        return None
    labels = [str(label) for label in properties_of(form.schema)["labels"]["items"].get("enum", ())]
    documents: list[Document] = []
    for label in labels:
        line = re.search(rf"^{re.escape(label)}: (.+)$", request.talk.system, re.MULTILINE)
        if line is None:
            return None
        documents.append(Document(spoken(label), line[1], request.requests.get(label, ())))
    talk = request.talk
    in_play = frozenset(labels.index(label) for label in labels if f"ask_{label}" in talk.in_play)
    question = talk.open_question or talk.request
    situation = Situation(question, tuple(documents), in_play, talk.last_reply, talk.embedder)
    decision = decide(situation, len(documents))
    words_of_tools: dict[int, str] = {}
    if isinstance(decision, Routes):
        words_of_tools = {part.tool: part.text for part in decision.parts}
    chosen = sorted(words_of_tools)
    query = words_of_tools[chosen[0]] if chosen else talk.request
    arguments = {"labels": [labels[number] for number in chosen], "query": query}
    return _make_calls(talk, "", [(form.name, arguments)])


def _share_in_swarm(request: Request) -> Reply | None:
    """A member of a swarm: its own part by its own tools, and then whoever else the request is for takes over."""
    talk, peers = request.talk, request.routers
    if not peers or not talk.role:
        return None
    own_part = Document("this", talk.role, request.own_requests)
    documents = (own_part, *_documents(peers))
    question = talk.open_question or talk.request
    decision = decide(Situation(question, documents, embedder=talk.embedder), talk.most_calls)
    parts = decision.parts if isinstance(decision, Routes) else (Part(0, question, 0.0),)
    mine: str | None = None
    handover: list[Call] = []
    for part in parts:
        if part.tool == 0:
            mine = part.text
            continue
        peer = peers[part.tool - 1].name
        if not handover and peer not in talk.previous_speakers:
            handover.append((peer, {"query": part.text, "intent_count": 1}))
    if talk.results:
        answer = composition.answer(mine or question, talk.results, request.acts, talk.phrases)
        return _make_calls(talk, answer, handover)
    if mine is None:
        return _make_calls(talk, "", handover)
    own_talk = Conversation([*talk.messages[: talk.asked_at], HumanMessage(mine)])
    own_tools = [tool for tool in request.tools if not tool.routes]
    own_reply = _look_up(replace(request, talk=own_talk, tools=own_tools, choice=None))
    if own_reply.calls:
        return own_reply
    return _make_calls(talk, own_reply.text, handover)


def _call_in_turns(request: Request) -> Reply | None:
    """The first sub-agent not called yet, one at a time; the answer when none is left."""
    talk = request.talk
    if not request.routers or not talk.in_turns:
        return None
    whole = _route(replace(request, choice=None))
    if whole is None:
        return None
    for call in whole.calls:
        if call["name"] not in talk.calls.values():
            return Reply("" if talk.calls else whole.text, (call,))
    if talk.calls:
        return Reply(composition.compose(talk.results, talk.phrases))
    return whole


def _report_plan(request: Request) -> Reply | None:
    """The answer to a plan that is done: what each step came to, as it was handed over."""
    results = request.talk.results
    if not results or not all(_PLAN_STEP.fullmatch(result.tool) for result in results):
        return None
    return Reply("\n\n".join(result.text for result in results))


def _answer_by_schema(request: Request) -> Reply | None:
    """The answer of an agent whose prompt names a schema for it."""
    talk = request.talk
    schema = json_answer.requested_schema(talk.system)
    looks_up = request.tools and request.choice != "none" and not talk.results
    if schema is None or looks_up:
        return None
    texts = [result.text for result in talk.results if not result.failed]
    return Reply(json_answer.build(schema, talk.request, talk.system, texts))


def _compose(request: Request) -> Reply | None:
    """The answer to results that have come back."""
    talk = request.talk
    results = talk.results
    if not results:
        return None
    if request.routers or any(result.of_agent for result in results):
        results += talk.left_out
        return Reply(composition.compose(results, talk.phrases))
    found_none = all(composition.UNMATCHED.match(result.text) for result in results)
    if talk.may_pass and found_none and _is_elsewhere(request, doubt=NONE_FOUND):
        return Reply(NO_ANSWER)
    answer = composition.answer(talk.request, results, request.acts, talk.phrases)
    narrowing = ""
    if not found_none:
        called = set(talk.calls.values())
        schemas = [tool.schema for tool in request.tools if tool.name in called]
        takes_words = any(map(properties_of, schemas))
        narrowing = narrowing_of(talk.request, talk.arguments, amounts=takes_words)
    other = english.OF_ANOTHER.search(talk.request)
    if other is not None and other[1].lower() not in answer.lower():
        answer = f"{talk.phrases.only_own.format(name=other[1])} {answer}"
    elif missing := _words_not_spoken_of(request):
        answer = f"{talk.phrases.not_spoken_of.format(words=missing)} {answer}"
    elif narrowing:
        answer = f"{talk.phrases.not_narrowed.format(words=narrowing)} {answer}"
    if not request.acts and asks_for_act(talk.request):
        answer = f"{talk.phrases.only_looked_up} {answer}"
    return Reply(answer)


def _words_not_spoken_of(request: Request) -> str:
    """Returns the words of a request that nothing found here is about: those of a short follow-up ("parking", of
    "do they have parking"), else a condition ("terrace", of "outlets with a terrace")."""
    talk = request.talk
    if request.acts or talk.referent or retries(talk.request):
        return ""
    if any(result.failed for result in talk.results):
        return ""
    if leans(talk):
        asked_words = words(english.REFERENCE.sub(" ", talk.request))
    else:
        asked_words = english.CONDITION.findall(talk.request)
    subject: list[str] = []
    for word in asked_words:
        if content_words(word) - english.FAINT - english.SAY_LITTLE:
            subject.append(word)
    if not 1 <= len(subject) <= MOST_SUBJECTS:
        return ""
    texts = [result.text for result in talk.results]
    called = set(talk.calls.values())
    for tool in request.tools:
        if tool.name in called:
            texts += [tool.label, tool.description]
    text = " ".join(texts)
    if any(speaks_of(text, word) for word in subject):
        return ""
    return f"“{' '.join(subject)}”"


def _answer_unaided(request: Request) -> Reply | None:
    """Without tools: what the text given says about the request."""
    if request.tools and request.choice != "none":
        return None
    talk = request.talk
    facts: list[str] = []
    for line in composition.sentences(talk.system):
        if not _ORDER.search(line):
            facts.append(line)
    for message in talk.history:
        if not isinstance(message, HumanMessage):
            facts.append(text_of(message))
    return Reply(composition.from_context(talk.request, "\n".join(facts)))


def _route(request: Request) -> Reply | None:
    """The calls of the sub-agents that a request is for."""
    talk, must = request.talk, request.must_call
    tools = [request.forced] if request.forced else request.routers
    if not tools:
        return None
    documents = _documents(tools)
    names = [tool.name for tool in tools]
    in_play = frozenset(names.index(name) for name in talk.in_play if name in names)
    # "Try again" is for whoever the question was for, also where nobody got to see it.
    question = talk.open_question or talk.request
    situation = Situation(question, documents, in_play, talk.last_reply, talk.embedder)
    decision = _decide(talk, situation, names)
    if not isinstance(decision, Routes):
        if talk.no_fit in names:
            default = names.index(talk.no_fit)
        elif must:
            default = int(situation.table.score(question).argmax())
        else:
            return Reply(_outside(request, tools))
        decision = Routes((Part(default, question, 0.0),), 1)
    calls: list[Call] = []
    labels: list[str] = []
    parts_of_thing = [part for part in decision.parts if talk.names_thing(part.text)]
    for part in decision.parts:
        is_switch = part.tool not in in_play
        # Of several matters only one may be about the thing that was shown.
        is_of_thing = part in (parts_of_thing or decision.parts)
        tool = tools[part.tool]
        labels.append(talk.label_of(tool.name))
        query = _with_its_thing(part.text, question)
        looks_up = english.INQUIRY.match(query) or english.LOOKS_UP.match(query)
        if english.CONDITIONAL.search(english.COURTESY.sub(" ", question)) and not looks_up:
            # An act without its condition would be done whether or not that holds.
            query = question
        args = _routing_args(
            talk, tool, query, decision.intents, is_switch=is_switch, is_of_thing=is_of_thing
        )
        calls.append((tool.name, args))
    if talk.phrases is not ENGLISH:
        return _make_calls(talk, "", calls)  # the line of the card or of the language is said
    return _make_calls(talk, composition.preamble(labels), calls)


def _outside(request: Request, tools: Sequence[Tool]) -> str:
    """Says plainly that nobody here answers the request, and what can be asked."""
    topics: list[str] = []
    for tool in tools:
        topics.append(
            request.topics.get(tool.name.removeprefix("ask_")) or request.talk.label_of(tool.name)
        )
    return request.talk.phrases.outside.format(topics=", or about ".join(topics))


def _with_its_thing(part: str, message: str) -> str:
    """A part of a message, with the id in front that it points at: "its menu" after "the seats of ou-0003"."""
    ids = identifiers(message[: message.find(part)])
    if not ids or identifiers(part) or not points_back(part):
        return part
    return f"{ids[-1]}: {part}"


def _decide(talk: Conversation, situation: Situation, names: Sequence[str]) -> Decision:
    """An open question is tried again, else the words decide. A picture counts where they say
    nothing or fit nothing: by the prompt's rule for it, else by likeness."""
    open_parts = [
        Part(i, talk.request, 1.0) for i, name in enumerate(names) if name in talk.unanswered
    ]
    if open_parts and retries(talk.request):
        return Routes(tuple(open_parts[: talk.most_calls]), len(open_parts))
    # Of what is asked again nobody counts the parts: what is over the limit is refused, and owned up to.
    most = len(names) if talk.open_question else talk.most_calls
    decision = decide(situation, most)
    if not talk.picture_text or (content_words(talk.typed_words) and isinstance(decision, Routes)):
        return decision
    if talk.picture_tool in names:
        return Routes((Part(names.index(talk.picture_tool), talk.request, 1.0),), 1)
    both = decide(replace(situation, request=f"{talk.typed_words} {talk.picture}"), talk.most_calls)
    if not isinstance(both, Routes):
        return decision
    best = max(both.parts, key=lambda part: part.score)
    return Routes((replace(best, text=talk.request),), 1)


def _routing_args(
    talk: Conversation,
    tool: Tool,
    query: str,
    intents: int,
    *,
    is_switch: bool,
    is_of_thing: bool,
) -> dict[str, Any]:
    args: dict[str, Any] = {"query": query, "intent_count": intents}
    extra = properties_of(tool.schema)
    context: list[str] = []
    if talk.referent and is_of_thing:
        context.append("The user means {} ({} {}).".format(*talk.referent))
    if (talk.referent and is_of_thing) or is_switch:
        context.append(name_entities([text_of(message) for message in talk.history[-4:]]))
    if "prior_context" in extra and any(context):
        args["prior_context"] = " ".join(filter(None, context))
    required: list[str] = list(tool.schema.get("required") or ())
    for name, spec in list(extra.items()):
        if name in ("query", "intent_count", "prior_context"):
            del extra[name]
        elif spec.get("enum") or "summary" in name:
            required.append(name)
    return args | fill({"properties": extra, "required": required}, Source(query, talk.system))


def _look_up(request: Request) -> Reply:
    """The calls of the one or two lookups that a request is for."""
    talk = request.talk
    must = request.must_call
    if talk.may_pass and not must and _is_elsewhere(request):
        return Reply(NO_ANSWER)
    tools = request.tools
    able = [tool for tool in tools if fillable(tool.schema)] or (list(tools) if must else [])
    if not able:
        return reply(Request(talk, (), None))
    question = _without_remarks(request)
    pieces = clauses(question)
    if not must and inquires(question):
        able = [tool for tool in able if not acts(tool, request.acts)]
        if not able:
            return Reply(NO_ANSWER if talk.may_pass else talk.phrases.not_kept)
    text = _with_antecedent(talk, question, may_act=bool(request.acts))
    if len(pieces) < 2:
        able = by_id(able, text)
    documents = _documents(able)
    # The lookups of one agent answer one matter, or two; whoever has those of several agents is asked as they are.
    most = talk.most_calls if any(tool.requests for tool in able) else 2
    goes_on_with_one_matter = text != question and len(clauses(talk.request)) < 2
    # Each of several matters of a thing that was shown is about that thing.
    thing = ""
    if talk.referent and not goes_on_with_one_matter:
        thing = f'"{talk.referent[0]}". '
        text = question
    situation = Situation(text, documents, embedder=talk.embedder)
    decision = decide(situation, most)
    if goes_on_with_one_matter or not isinstance(decision, Routes):
        closest = int(situation.table.score(text).argmax())
        decision = Routes((Part(closest, text, 0.0),), 1)
    lookups = [i for i, tool in enumerate(able) if not acts(tool, request.acts)]
    decision = with_questions_apart(decision, situation.table, lookups)
    calls: list[Call] = []
    for part in decision.parts:
        tool = able[part.tool]
        may_act = part.tool not in lookups
        about = frozenset(word.rstrip("s") for word in tool.label.split())
        source = Source(f"{thing}{part.text}", about=about, earlier=talk.before)
        calls_of_part = fill_each(tool.schema, source)
        refusals = [
            why_not(tool.schema, arguments, part.text, talk.phrases, may_act=may_act)
            for arguments in calls_of_part
        ]
        if may_act:
            others = [other.text for other in decision.parts if other is not part]
            requests = (*request.own_requests, *tool.requests)
            refusals.insert(0, why_not_act(talk, tool, text, others, calls_of_part, requests))
        for refusal in refusals:
            if refusal is not None and not must:
                return Reply(refusal)
        calls += [(tool.name, arguments) for arguments in calls_of_part]
    return _make_calls(talk, "", calls)


def _is_elsewhere(request: Request, *, doubt: float = 0.0) -> bool:
    """Whether a request is for none of an agent's lookups, nor worded like what the agent is asked."""
    talk = request.talk
    table = _own_table(request)
    # What is meant was shown by somebody here: "the second one" says nothing by its own words.
    if table is None or talk.referent:
        return False
    if leans(talk) and (names_nothing(talk.request) or is_of_several(talk.request)):
        return False
    question = _without_remarks(request)
    return is_for_nobody(question, talk.last_reply, table, leans=leans(talk), doubt=doubt)


def _without_remarks(request: Request) -> str:
    """Returns the request of an agent without its clauses that are for nobody: "finals week is killing me".

    A lookup that is sent their words finds nothing. What points back is left as it is: "the second one" is for
    nobody either, by its words.
    """
    talk = request.talk
    pieces = [clause.text for clause in clauses(talk.request)]
    table = _own_table(request)
    if len(pieces) < 2 or table is None or leans(talk):
        return talk.request
    for_agent = [piece for piece in pieces if not table.is_elsewhere(piece)]
    if not for_agent or len(for_agent) == len(pieces):
        return talk.request
    return ". ".join(for_agent)


def _own_table(request: Request) -> Index | None:
    """What an agent is asked and its lookups are about; None where that is not known well enough to doubt a request."""
    talk = request.talk
    if not (request.tools and request.own_requests) or talk.picture_text:
        # Whoever sent the request here knows more of it than a few descriptions of lookups say.
        return None
    first, *others = _documents(request.tools)
    # Whichever lookup they are for, the requests of the agent are none that are asked elsewhere.
    return index((first._replace(requests=request.own_requests), *others), talk.embedder)


def _with_antecedent(talk: Conversation, question: str, *, may_act: bool) -> str:
    """What is asked, with what it points at in front when it cannot stand alone: its picture, or the request before."""
    if talk.referent:
        return f'"{talk.referent[0]}". {talk.request}'
    if not talk.ids and not points_back(talk.request, talk.last_reply):
        return question
    if talk.picture_text:
        return f"{talk.picture_text}. {talk.request}"
    if talk.ids:
        return f'"{" ".join(talk.ids)}". {talk.request}'
    if talk.open_question:
        return talk.open_question
    if english.ONE_THING.search(talk.request) and talk.one_thing:
        return f'"{talk.one_thing}". {talk.request}'
    if may_act and begins_act(question):
        return question  # after "What can I help you with?" it answers nothing, and says all of it
    return f"{talk.so_far or talk.before}{talk.request}"


def _documents(tools: Sequence[Tool]) -> tuple[Document, ...]:
    return tuple(tool.document for tool in tools)


def _make_calls(talk: Conversation, text: str, calls: Sequence[Call]) -> Reply:
    """The calls, with ids that are the same for the same conversation."""
    tool_calls: list[ToolCall] = []
    for number, (name, args) in enumerate(calls):
        arguments = json.dumps(args, sort_keys=True, default=str)
        seed = (
            f"{len(talk.messages)}\n{talk.system[:2000]}\n{talk.request}{number}{name}{arguments}"
        )
        digest = blake2s(seed.encode(errors="replace")).hexdigest()
        tool_calls.append(
            ToolCall(name=name, args=args, id=f"call_{digest[:16]}", type="tool_call")
        )
    return Reply(text, tuple(tool_calls))


MODES: tuple[Callable[[Request], Reply | None], ...] = (
    _plan,
    _carry_out_step,
    _classify,
    _fill_form,
    _chat,
    _share_in_swarm,
    _call_in_turns,
    _report_plan,
    _answer_by_schema,
    _compose,
    _answer_unaided,
    _route,
)
"""The ways to answer, the most particular first; each returns None where a request is for another."""
