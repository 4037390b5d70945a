"""What a turn may read of its session, each reader its own part, and what it leaves for the next (decisions 2, 3)."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from kit.compose.parts import DeckSettings
from kit.compose.prompts import tokens
from kit.compose.reference import kinds_of, leans_back, points_back, resolve
from kit.core.bodies.call import AgentStarted, ModelEnded
from kit.core.bodies.memory import Compacted, ContextCarried
from kit.core.bodies.speech import Separator
from kit.core.context import Recollection, Session
from kit.core.language.retry import retries
from kit.core.language.small_talk import takes_rest
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.core.picture import mark_pictures
from kit.core.record import (
    LINES,
    SUMMARY_NOTE,
    UNANSWERED,
    Message,
    Note,
    SessionRecall,
    ShownComponent,
    TurnRecord,
    summary_of,
)
from kit.core.secret import without_secret_words
from kit.core.transcript import answer_parts
from kit.core.value import builder
from kit.models.message import human_text
from kit.runtime.act_ledger import LedgerEntry, acts_of
from kit.runtime.bound_model import BoundModel
from kit.runtime.budget import GRACE
from kit.runtime.context import RunContext, SessionMemory, TurnState
from kit.runtime.job import PRIOR_CONTEXT, SUMMARY, distil, fields_from, meant, run_job
from kit.stores.model_request import SHOWN, SUMMED_UP
from kit.stores.recall import asked_once_more

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

_new_message = builder(Message)
SHARED = 4096
"""Messages that are kept for the next turn, those of all conversations together."""
CHAIN_LAPSE = 29 * 24 * 3600.0
"""Seconds after which a provider may have forgotten a response."""


OWED = "owed"
"""The note that holds what a turn left out."""


def most_lines(settings: DeckSettings) -> int:
    """Returns how many messages of one reader a turn reads."""
    return max(LINES, 2 * (settings.compact_after or 0) + 8)


def messages_of(lines: Iterable[Message]) -> list[BaseMessage]:
    """Lines of narration as a model reads them; the end of a provider's response chain is named on its line.

    Turns share these messages, so nobody may change one: what a model adds to a message, it adds to a copy.
    """
    base_messages: list[BaseMessage] = []
    for line in lines:
        base_messages.append(_message(line.turn_id, line.role, line.text, line.response_id))
    return base_messages


@lru_cache(maxsize=SHARED)
def _message(turn_id: str, role: str, text: str, response_id: str | None) -> BaseMessage:
    """Makes a line's message once for all turns that tell it; the turn's id keeps the lines of two
    conversations apart."""
    if role == "user":
        return human_text(text)
    if response_id is None:
        return AIMessage(text)
    return AIMessage(text, response_metadata={"id": response_id})


class Memory(SessionMemory):
    """One turn's view of its session: a snapshot, one query for each reader who asks; "" is the
    orchestrator.

    Turns of one session may run at the same time: each sees the turns that had ended when it first
    looked, and all are kept.
    """

    def __init__(
        self,
        store: "TurnStore",
        session: Session,
        past: SessionRecall | None,
        settings: DeckSettings,
        message: str,
        recollection: Recollection,
        conversation: Sequence[Message] | None = None,
    ):
        self._store = store
        self._session = session
        self._settings = settings
        self._message = message
        self._last_agents = None if recollection.routed is None else frozenset(recollection.routed)
        """Who was called in the last turn that called anybody or failed; None where there was none (decisions 3)."""
        self._conversation = conversation
        self._components: Sequence[ShownComponent] | None = None
        self._points_back: bool | None = None
        """Whether the message speaks of something that was shown; None until somebody asks."""
        self._notes: Mapping[str, Note] = {}
        self.beside = recollection.beside
        """Turns that this one knows nothing of: they were at work when it began."""
        self._asked_again: TurnRecord | None = None
        self._has_looked = False
        self.may_ask_again = recollection.routed == ()
        """Whether there is a turn that the message may ask for once more, though it came to no answer."""
        if past is not None:
            self._asked_again = past.asked_again
            self.may_ask_again |= past.has_cut_off or past.asked_again is not None
            # a new session has nothing to look up, so its recall brings empty lines
            if conversation is None:
                self._conversation = past.lines
                self._notes = past.notes
            self._components = past.components
        elif conversation is None:
            self._conversation = ()
        self.has_owed = OWED in self._notes
        self._longest_window = most_lines(settings)
        self._windows: dict[str, Sequence[Message]] = {}
        self.tidying: asyncio.Task[None] | None = None
        """Sums up old turns beside this one."""
        self._new_notes: dict[str, Note] = {}
        self._summary: dict[str, Any] = {}
        note = self._notes.get(SUMMARY_NOTE)
        if note is not None:
            self._summary = note.fields("text", "through") or {}

    def history(self, reader: str) -> Sequence[Message]:
        """Narration as one reader may see it, oldest first: what the user saw, or an agent's own turns."""
        if reader not in self._windows:
            if reader and self._settings.history == "whole":
                # a response chain is the orchestrator's own: no other model may go on with it
                self._windows[reader] = [
                    line.replace(response_id=None) for line in self.history("")
                ]
            else:
                self._windows[reader] = self._lines_of(reader)
        return self._windows[reader]

    def _lines_of(self, reader: str) -> Sequence[Message]:
        """The lines that are the reader's own, whatever the deck lets it read beside them."""
        if self._conversation is not None:
            return [message for message in self._conversation if message.agent == reader]
        since = None if reader else self._summary.get("through")
        user = self._session.principal
        lines = self._store.history(self._session.key, reader, self._longest_window, since, user)
        if self.beside:
            # One of them may have ended since this turn looked.
            lines = [line for line in lines if line.turn_id not in self.beside]
        if f"chain:{reader}" in self._notes:
            return self._chained(reader, lines)
        return lines

    def suffix(self, reader: str) -> str:
        """What a reader's prompt ends with, beside the request's own lines: a summary, and what was
        shown when that matters."""
        text = ""
        if self._settings.history != "own":
            reader = ""
        if self._summary and not reader:
            text = f"\n{SUMMED_UP}{self._summary['text']}"
        if self._points_back is None:
            may_have_shown = self._conversation is None or bool(self._components)
            self._points_back = may_have_shown and points_back(
                self._message, self._settings.components
            )
        if self._points_back:
            text += self._references(reader)
        return text

    def _references(self, reader: str) -> str:
        """What a reader's newest turn showed, and which of all that is in history the message means, where it says so.

        What another agent showed is no reference of its own, unless the same turn holds one of its own in that place.
        """
        kinds = self._settings.components
        components = self._shown()
        item = resolve(self._message, components, kinds)
        if reader:
            components = [shown for shown in components if shown.agent == reader]
            if item is not None and item.agent != reader:
                same_turn = [shown for shown in components if shown.turn_id == item.turn_id]
                item = resolve(self._message, same_turn, kinds)
        text = ""
        if components:
            newest_turn = components[-1].turn_id
            lines = [_line(shown) for shown in components if shown.turn_id == newest_turn]
            text = SHOWN + "\n".join(lines)
        if item is not None:
            name = _title(item) or item.id
            text += f"\nThe user means {name} ({item.type} {item.id}). Say by its name which one you speak of."
        return text

    def _shown(self) -> Sequence[ShownComponent]:
        """Returns what was shown; nothing where a conversation stands in for the store."""
        if self._components is None and self._conversation is not None:
            self._components = ()
        if self._components is None:
            user = self._session.principal
            components = self._store.shown_components(self._session.key, user, LINES // 2)
            self._components = [shown for shown in components if shown.turn_id not in self.beside]
        return self._components

    def waits(self, call: AgentCall, ctx: RunContext) -> bool:
        """Whether a call waits for something of earlier turns. A closed hand-off takes no prior_context."""
        agent = ctx.turn.agents.get(call.agent)
        if agent is None or self._conversation == ():
            return False
        if agent.card.handoff.distilled or (self.may_ask_again and self._repeated_by(call)):
            return True
        if agent.card.handoff.closed:
            return self._is_retry(call, ctx)
        return self._is_unaware(call)

    def _is_retry(self, call: AgentCall, ctx: RunContext) -> bool:
        """Whether a call asks a closed agent again for what it has not answered.

        An open agent reads its unanswered question in its own history. A closed one reads its query and nothing else.
        """
        agent = ctx.turn.agents[call.agent]
        unanswered = call.agent in ctx.turn.dynamic.unanswered
        return unanswered and agent.card.handoff.closed and retries(call.query)

    def _repeated_by(self, call: AgentCall) -> TurnRecord | None:
        """The turn that was cut off, where a call only says "try again": its agent has read nothing of that."""
        return self.asked_again() if retries(call.query) else None

    def _query_in(self, again: TurnRecord, agent: str) -> str:
        """What an agent was asked in an earlier turn; where that never came to it, all that was asked then."""
        query = again.message
        for event in self._store.events(again.id, self._session.principal):
            if isinstance(event.body, AgentStarted) and event.body.agent == agent:
                query = event.body.query
        return query

    def _with_unanswered_query(self, call: AgentCall, ctx: RunContext) -> AgentCall:
        """Returns a call with the question that was left open in place of a mere "try again"."""
        query = call.query
        if self._is_retry(call, ctx):
            lines = list(self._lines_of(call.agent))
            while len(lines) > 1 and lines[-1].text == UNANSWERED:
                lines.pop()
                query = lines.pop().text
                # what failed may have been a "try again" itself
                if not retries(query):
                    break
        elif self.may_ask_again and (again := self._repeated_by(call)):
            query = self._query_in(again, call.agent)
        if query != call.query:
            reason = "asked again: the unanswered question travels in place of these words"
            ctx.guarded("retry", "reworded", reason, call)
        return call.replace(query=query)

    def _is_unaware(self, call: AgentCall) -> bool:
        """Whether a call's agent has not seen what came before, and its call does not say (decisions 3, 27).

        Of a turn that others had a part of it saw its own part: that will do for a message that
        stands alone. One that gave no answer then is told again what it was told then.
        """
        if self._last_agents is None or call.prior_context or self._settings.history != "own":
            return False
        if call.agent not in self._last_agents:
            return True
        # Where several answered, each of them read its own part and not the others'.
        if len(self._last_agents) > 1:
            return leans_back(self._message, self._settings.components)
        lines = self.history(call.agent)
        if not lines or lines[-1].text != UNANSWERED:
            return False
        if self._summary:
            return True
        turns_seen = {line.turn_id for line in lines}
        for line in self.history(""):
            if line.turn_id == lines[-1].turn_id:
                return False
            if line.turn_id not in turns_seen:
                return True
        return False

    async def carry(self, calls: Sequence[AgentCall], ctx: RunContext) -> list[AgentCall]:
        """The same calls with what they need of earlier turns; nobody waits for more than one helper call."""
        calls = [self._with_unanswered_query(call, ctx) for call in calls]
        prior = self._with_prior_context(calls, ctx)
        if not any(self._is_distilled(call, ctx) for call in calls):
            return await prior
        fields_of_calls = asyncio.gather(*(self._fields(call, ctx) for call in calls))
        carried, fields = await asyncio.gather(prior, fields_of_calls)
        calls_with_fields: list[AgentCall] = []
        for call, values in zip(carried, fields, strict=True):
            calls_with_fields.append(call.replace(fields=values))
        return calls_with_fields

    def _is_distilled(self, call: AgentCall, ctx: RunContext) -> bool:
        agent = ctx.turn.agents.get(call.agent)
        return agent is not None and agent.card.handoff.distilled

    async def _fields(self, call: AgentCall, ctx: RunContext) -> Mapping[str, Any]:
        """Returns the fields of a call with those that its card has filled from earlier turns."""
        if not self._is_distilled(call, ctx):
            return call.fields
        card = ctx.turn.agents[call.agent].card
        shown: list[ShownComponent] = []
        if fields_from(card, "shown"):
            components = self._shown()
            kinds = kinds_of(components, self._settings.components)
            shown = meant(call.query, components, points_back(call.query, kinds))
        material: list[BaseMessage] = []
        if fields_from(card, "conversation"):
            material = self._material(self.history(""))
        return await distil(call, card, material, shown, ctx)

    async def _with_prior_context(
        self, calls: Sequence[AgentCall], ctx: RunContext
    ) -> list[AgentCall]:
        """The same calls, with prior_context for those that need it: the helper model writes it,
        once; else they run without."""
        unaware: list[AgentCall] = []
        for call in calls:
            handoff = ctx.turn.agents[call.agent].card.handoff
            if not handoff.closed and self._is_unaware(call):
                unaware.append(call)
        if not unaware or not (self.history("") or self._summary):
            return list(calls)
        request = "A specialist takes over."
        # one part of a message is not another's business
        if len(unaware) == 1:
            request += f" The request is: {unaware[0].query}"
        text = await run_job(PRIOR_CONTEXT, self._material(self.history("")), request, ctx)
        ctx.emit(ContextCarried(agents=tuple(call.agent for call in unaware), text=text))
        return [call.replace(prior_context=text) if call in unaware else call for call in calls]

    def waiting_question(self) -> str | None:
        """What a turn before this one still asks its user, where nobody was asked anything since; else None."""
        for record in self._newest_turns():
            if record.status == "paused":
                return record.text
            if record.status != "running" and record.invoked:
                return None
        return None

    def asked_again(self) -> TurnRecord | None:
        """The earlier turn that the message asks for once more (`asked_once_more`)."""
        if not self._has_looked and self._conversation is None:
            self._asked_again = asked_once_more(self._store, self._newest_turns(), self._message)
        self._has_looked = True
        return self._asked_again

    def acts_cut_off(self) -> Mapping[str, LedgerEntry]:
        """What such a turn had begun when its process died, by key."""
        again = self.asked_again()
        if again is None or again.status != "interrupted":
            return {}
        return acts_of(self._store.events(again.id, self._session.principal)).entries

    def message_meant(self, ctx: RunContext) -> str:
        """The message, or what "go on" stands for: a turn that was cut off, or what the last answer left out."""
        again = self.asked_again() if retries(self._message) else None
        if again is not None and again.pattern == ctx.turn.pattern and again.has_no_answer:
            ctx.guarded("retry", "reworded", f"what was cut off is meant: {again.message}")
            return again.message
        if self.owed and takes_rest(self._message, self.said_last()):
            message = ", and ".join(self.owed)
            reason = f"the message takes up what the last answer left out: {message}"
            ctx.guarded("left_out", "reworded", reason)
            return message
        return self._message

    def earlier_act(self, key: str, former_key: str) -> LedgerEntry | None:
        """What an earlier turn still asks, did or may have done, under a key; one that failed may be tried again."""
        for record in self._newest_turns():
            acts = acts_of(self._store.events(record.id, self._session.principal))
            entry = acts.entry(acts.known_key(key, former_key))
            if entry.state == "asked" and record.status == "paused":
                return entry
            if entry.act is not None and not entry.has_failed:
                return entry
        return None

    def _newest_turns(self) -> Sequence[TurnRecord]:
        user = self._session.principal
        return self._store.turns(self._session.id, user.tenant_id, user.user_id, LINES)

    # compaction

    def tidy(self, ctx: RunContext) -> None:
        """Begins to sum up old turns beside this one, when there are too many; their summary holds
        from the next turn on."""
        settings = self._settings
        lines = self.history("")
        if not lines or self._conversation is not None or not settings.compact_after:
            return
        is_crowded = len(lines) >= 2 * settings.compact_after
        if settings.compact_tokens is not None and len(lines) > 2 * settings.compact_keep:
            size = 0
            for line in lines:
                size += tokens(line.text)
            is_crowded = is_crowded or size >= settings.compact_tokens
        if is_crowded:
            name = f"compaction {ctx.turn.log.turn_id}"
            self.tidying = asyncio.create_task(self._compact(ctx), name=name)

    async def settle(self, seconds: float) -> None:
        """Gives the summing up so many seconds to end, then stops it. A stop of the turn that comes now
        changes nothing of its answer."""
        task = self.tidying
        assert task is not None
        clock = asyncio.get_running_loop().time
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task}, timeout=seconds)
        task.cancel()
        # Cancelling asks; work that takes no notice must not keep the turn from its end.
        over = clock() + GRACE
        # what does not end then is left behind
        while not task.done() and clock() < over:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task}, timeout=over - clock())

    async def _compact(self, ctx: RunContext) -> None:
        """Sums up the turns before the newest ones, with what was summed up before; when that fails, nothing changes.

        Where failures left more turns than are read at once, the oldest come first, a few at a time.
        """
        lines = self.history("")
        turn_ids = list(dict.fromkeys([line.turn_id for line in lines]))
        kept_ids = set(turn_ids[-self._settings.compact_keep :])
        if len(lines) == self._longest_window:
            through = self._summary.get("through")
            user = self._session.principal
            lines = self._store.history(self._session.key, "", -LINES // 2, through, user)
            # it may be cut
            kept_ids.add(lines[-1].turn_id)
        old_lines = [line for line in lines if line.turn_id not in kept_ids]
        if not old_lines:
            return
        request = "Sum up the conversation so far."
        text = await run_job(SUMMARY, self._material(old_lines), request, ctx)
        size_before = tokens(self._summary.get("text", ""))
        for line in old_lines:
            size_before += tokens(line.text)
        count = len({line.turn_id for line in old_lines})
        ctx.emit(
            Compacted(
                done=text is not None,
                turns=count,
                kept=len(turn_ids) - count,
                before=size_before,
                after=tokens(text) if text else size_before,
            )
        )
        # When the job failed nothing changes, and the next turn tries again.
        if text is not None:
            turns = self._summary.get("turns", 0) + count
            summary = {"text": text, "through": old_lines[-1].turn_id, "turns": turns}
            note = Note(value=json.dumps(summary), at=time.time())
            self._new_notes[SUMMARY_NOTE] = note
            self._new_notes[summary_of(ctx.turn.log.turn_id)] = note

    def _material(self, lines: Iterable[Message]) -> list[BaseMessage]:
        messages = messages_of(lines)
        if self._summary:
            messages.insert(0, AIMessage(f"Earlier: {self._summary['text']}"))
        return messages

    # response chains

    def _chained(self, reader: str, lines: list[Message]) -> list[Message]:
        """Names the provider's response on the newest line, where its chain holds exactly the turns
        told here (decisions 13)."""
        note = self._notes[f"chain:{reader}"]
        end = note.fields("turn", "after", "id")
        if end is None:
            return lines
        turn_ids = list(dict.fromkeys(line.turn_id for line in lines))
        # A turn that ran beside that one, or was compacted away, is in no chain of the provider's.
        continues = turn_ids[-1:] == [end["turn"]] and ["", *turn_ids][-2] == end["after"]
        if not continues or lines[-1].role != "assistant" or time.time() - note.at > CHAIN_LAPSE:
            return lines
        return [*lines[:-1], lines[-1].replace(response_id=end["id"])]

    def remember(self, turn: TurnRecord, ctx: RunContext) -> Mapping[str, Note]:
        """What the episode keeps of this turn beside its narration: a new summary, the ends of response chains."""
        response_ids: dict[str, str] = {}
        last_text = ""
        for event in ctx.turn.log.events:
            body = event.body
            if type(body) is ModelEnded:
                if body.response_id:
                    response_ids[body.agent] = body.response_id
                if body.agent == ctx.path:
                    last_text = body.text
        if last_text.strip() != turn.text.strip():
            # the user read other words than the provider remembers
            response_ids.pop(ctx.path, None)
        if response_ids:
            self._keep_chains(response_ids, turn, ctx)
        # The note is kept beside the events, so nothing else takes a secret of the user's words out of it.
        owed: list[str] = []
        for part in ctx.turn.owed_parts:
            owed.append(without_secret_words(part, ctx.turn.log.secrets))
        # A turn that left nothing out clears what was kept.
        if owed or self.owed:
            text = json.dumps(owed, ensure_ascii=False)
            self._new_notes[OWED] = Note(value=text, at=time.time())
        return self._new_notes

    @property
    def owed(self) -> tuple[str, ...]:
        """What the last turn left out and offered to take next, in the user's words."""
        if self.has_owed:
            return tuple(json.loads(self._notes[OWED].value))
        return ()

    def _keep_chains(
        self, response_ids: Mapping[str, str], turn: TurnRecord, ctx: RunContext
    ) -> None:
        answer_counts: Counter[str] = Counter()
        for outcome in ctx.turn.outcomes:
            if isinstance(outcome, Answer):
                answer_counts[outcome.agent] += 1
        for agent_id, response_id in response_ids.items():
            agent = ctx.turn.agents.get(agent_id)
            model = getattr(agent, "model", None)
            if not isinstance(model, BoundModel) or model.spec.api != "responses":
                continue
            if getattr(agent, "composer", None):
                # what another model composed is no link of this one's chain
                continue
            is_lead = agent_id == ctx.path
            if answer_counts[agent_id] != 1 and not (is_lead and turn.status == "ok"):
                continue
            reader = "" if is_lead else agent_id
            lines = self.history(reader)
            previous_turn = lines[-1].turn_id if lines else ""
            end = {"id": response_id, "turn": turn.id, "after": previous_turn}
            self._new_notes[f"chain:{reader}"] = Note(value=json.dumps(end), at=time.time())


def _line(item: ShownComponent) -> str:
    return f"{item.position}. {item.type} {item.id}: {_title(item)}"


def _title(item: ShownComponent) -> str:
    return " ".join(item.title.split())[:80]


def dialogue(turn: TurnRecord, state: TurnState) -> list[Message]:
    """Returns the messages a turn leaves for each reader: what the user saw for the orchestrator,
    its own part for each agent.

    What the user saw is one message, or one for each part where parts stand apart. A question that
    got no answer stays in its agent's part, marked as open; one that a guard dropped was never the
    user's (decisions 27).
    """
    texts = [turn.text]
    for event in state.log.events:
        if type(event.body) is Separator:
            texts = answer_parts(turn.text, state.log.events)
            break
    messages = [_new_message(turn_id=turn.id, role="user", text=turn.message)]
    for text in texts:
        messages.append(_new_message(turn_id=turn.id, role="assistant", text=text))
    replies: list[tuple[AgentCall | Outcome, str]] = []
    unanswered: list[AgentCall | Outcome] = []
    for outcome in state.outcomes:
        if isinstance(outcome, Failure):
            unanswered.append(outcome)
        elif not outcome.is_handover:
            replies.append((outcome, outcome.text))
    # What was answered comes first: an agent's newest line says whether it still owes something.
    for call in (*unanswered, *state.over_cap):
        replies.append((call, UNANSWERED))
    queries: dict[str, str] = dict(map(attrgetter("call_id", "query"), state.calls))
    for call, text in replies:
        query = queries.get(call.call_id)
        if query is None:
            query = turn.message
        elif state.pictures:
            query = mark_pictures(query, state.pictures)
        messages.append(_new_message(turn_id=turn.id, role="user", text=query, agent=call.agent))
        reply = _new_message(turn_id=turn.id, role="assistant", text=text, agent=call.agent)
        messages.append(reply)
    return messages
