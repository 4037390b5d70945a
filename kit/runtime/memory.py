"""What a turn may read of its session, each reader its own part, and what it leaves for the next (decisions 2, 3)."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage

from kit.compose.parts import DeckSettings
from kit.compose.prompts import tokens
from kit.compose.reference import kinds_of, leans_back, points_back, resolve
from kit.core.bodies.call import ModelEnded
from kit.core.bodies.guard import GuardActed
from kit.core.bodies.memory import Compacted, ContextCarried
from kit.core.context import Session
from kit.core.language.retry import retries
from kit.core.outcome import AgentCall, Answer
from kit.core.record import (
    LINES,
    UNANSWERED,
    Message,
    Note,
    SessionRecall,
    ShownComponent,
    TurnRecord,
)
from kit.core.secret import without_secret_words
from kit.models.message import human_text
from kit.runtime.agents.distiller import distil, fields_from, meant
from kit.runtime.bound_model import BoundModel
from kit.runtime.budget import GRACE
from kit.runtime.context import Agent, RunContext, SessionMemory
from kit.runtime.job import PRIOR_CONTEXT, SUMMARY, run_job
from kit.stores.model_request import SHOWN, SUMMED_UP
from kit.stores.protocol import Store

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
        store: Store,
        session: Session,
        past: SessionRecall | None,
        settings: DeckSettings,
        message: str,
        last_agents: Sequence[str] | None,
        conversation: Sequence[Message] | None = None,
    ):
        self._store = store
        self._session = session
        self._settings = settings
        self._message = message
        if last_agents is None:
            self.last_agents = None
        else:
            self.last_agents = frozenset(last_agents)
        # a new session has nothing to look up
        if past is None:
            lines = ()
        else:
            lines = past.lines
        if conversation is None:
            self._conversation = lines
        else:
            self._conversation = conversation
        self._notes: Mapping[str, Note] = (
            past.notes if past is not None and conversation is None else {}
        )
        self._most = most_lines(settings)
        self._read: dict[str, Sequence[Message]] = {}
        self._components: Sequence[ShownComponent] | None = (
            None if past is None else past.components
        )
        self._tidying: asyncio.Task[None] | None = None
        self._new: dict[str, Note] = {}
        note = self._notes.get("summary")
        self._summary: dict[str, Any] = {}
        if note is not None:
            self._summary = note.fields("text", "through") or {}

    def history(self, reader: str) -> Sequence[Message]:
        """Narration as one reader may see it, oldest first: what the user saw, or an agent's own turns."""
        if reader not in self._read:
            self._read[reader] = self._lines(reader)
        return self._read[reader]

    def _lines(self, reader: str) -> Sequence[Message]:
        if reader and self._settings.history == "whole":
            lines: list[Message] = []
            for line in self.history(""):
                lines.append(line.model_copy(update={"response_id": None}))
            return lines
        return self._lines_of(reader)

    def _lines_of(self, reader: str) -> Sequence[Message]:
        """The lines that are the reader's own, whatever the deck lets it read beside them."""
        if self._conversation is not None:
            messages: list[Message] = []
            for message in self._conversation:
                if message.agent == reader:
                    messages.append(message)
            return messages
        if reader:
            since = None
        else:
            since = self._summary.get("through")
        who = self._session.principal
        lines = self._store.history(self._session.id, reader, self._most, since, who)
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
        if (self._conversation is None or self._components) and points_back(
            self._message, self._settings.components
        ):
            text += self._references(reader)
        return text

    def _references(self, reader: str) -> str:
        """What a reader's newest turn showed, and which of all that is in history the message means, where it says so.

        What another agent showed is no reference of its own, unless the same turn holds one of its own in that place.
        """
        kinds = self._settings.components
        components = self._shown()
        one = resolve(self._message, components, kinds)
        if reader:
            components = [item for item in components if item.agent == reader]
            if one is not None and one.agent != reader:
                one = resolve(
                    self._message,
                    [item for item in components if item.turn_id == one.turn_id],
                    kinds,
                )
        newest: list[str] = []
        for item in components:
            if item.turn_id == components[-1].turn_id:
                newest.append(_line(item))
        if newest:
            text = SHOWN + "\n".join(newest)
        else:
            text = ""
        if one is None:
            return text
        return (
            text
            + f"\nThe user means {_title(one) or one.id} ({one.type} {one.id}). Say by its name which one you speak of."
        )

    def _shown(self) -> Sequence[ShownComponent]:
        """Returns what was shown; nothing where a conversation stands in for the store."""
        if self._components is None:
            given = self._conversation is not None
            who = self._session.principal
            if given:
                self._components = ()
            else:
                self._components = self._store.shown_components(self._session.id, who, LINES // 2)
        return self._components

    def waits(self, call: AgentCall, ctx: RunContext) -> bool:
        """Whether a call waits for something of earlier turns. A closed hand-off takes no prior_context."""
        agent = ctx.turn.agents.get(call.agent)
        if agent is None or self._conversation == ():
            return False
        if agent.card.handoff.distilled:
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

    def _with_unanswered_query(self, call: AgentCall, ctx: RunContext) -> AgentCall:
        """Returns a call with the question that its agent left open in place of a mere "try again"."""
        if not self._is_retry(call, ctx):
            return call
        query = call.query
        lines = list(self._lines_of(call.agent))
        while len(lines) > 1 and lines[-1].text == UNANSWERED:
            lines.pop()
            query = lines.pop().text
            if not retries(query):  # what failed may have been a "try again" itself
                break
        if query != call.query:
            reason = "asked again: the unanswered question travels in place of these words"
            ctx.emit(
                GuardActed(
                    guard="retry",
                    action="reworded",
                    agent=call.agent,
                    call_id=call.call_id,
                    reason=reason,
                )
            )
        return call.model_copy(update={"query": query})

    def _is_unaware(self, call: AgentCall) -> bool:
        """Whether a call's agent has not seen what came before, and its call does not say
        (decisions 3, 27).

        Of a turn that others had a part of it saw its own part: that will do for a message that
        stands alone. One that gave no answer then is told again what it was told then.
        """
        if self.last_agents is None or call.prior_context or self._settings.history != "own":
            return False
        if call.agent not in self.last_agents:
            return True
        if len(self.last_agents) > 1:
            return leans_back(self._message, self._settings.components)
        own = self.history(call.agent)
        if not own or own[-1].text != UNANSWERED:
            return False
        seen = {line.turn_id for line in own}
        before = takewhile(lambda line: line.turn_id != own[-1].turn_id, self.history(""))
        return bool(self._summary) or any(line.turn_id not in seen for line in before)

    async def carry(self, calls: Sequence[AgentCall], ctx: RunContext) -> list[AgentCall]:
        """The same calls with what they need of earlier turns; nobody waits for more than one helper call."""
        calls = [self._with_unanswered_query(call, ctx) for call in calls]
        prior = self._with_prior_context(calls, ctx)
        if not any(
            agent.card.handoff.distilled
            for call in calls
            if (agent := ctx.turn.agents.get(call.agent))
        ):
            return await prior
        carried, fields = await asyncio.gather(
            prior, asyncio.gather(*(self._fields(call, ctx) for call in calls))
        )
        agent_calls: list[AgentCall] = []
        for call, own in zip(carried, fields, strict=True):
            agent_calls.append(call.model_copy(update={"fields": own}))
        return agent_calls

    async def _fields(self, call: AgentCall, ctx: RunContext) -> Mapping[str, Any]:
        """Returns the fields of a call with those that its card has filled from earlier turns."""
        agent = ctx.turn.agents.get(call.agent)
        if agent is None or not agent.card.handoff.distilled:
            return call.fields
        by_rule, by_model = (
            fields_from(agent.card, source) for source in ("shown", "conversation")
        )
        shown: list[ShownComponent] = []
        if by_rule:
            components = self._shown()
            kinds = kinds_of(components, self._settings.components)
            shown = meant(call.query, components, points_back(call.query, kinds))
        return await distil(
            call, agent.card, self._material(self.history("")) if by_model else [], shown, ctx
        )

    async def _with_prior_context(
        self, calls: Sequence[AgentCall], ctx: RunContext
    ) -> list[AgentCall]:
        """The same calls, with prior_context for those that need it: the helper model writes it,
        once; else they run without."""
        bare: list[AgentCall] = []
        for c in calls:
            if not ctx.turn.agents[c.agent].card.handoff.closed and self._is_unaware(c):
                bare.append(c)
        if bare:
            lines = self.history("")
        else:
            lines = ()
        if not bare or not (lines or self._summary):
            return list(calls)
        # one part of a message is not another's business
        if len(bare) == 1:
            about = f" The request is: {bare[0].query}"
        else:
            about = ""
        text = await run_job(
            PRIOR_CONTEXT, self._material(lines), f"A specialist takes over.{about}", ctx
        )
        ctx.emit(ContextCarried(agents=tuple(call.agent for call in bare), text=text))
        agent_calls: list[AgentCall] = []
        for call in calls:
            agent_calls.append(call.replace(prior_context=text) if call in bare else call)
        return agent_calls

    # compaction

    @property
    def crowded(self) -> bool:
        """Whether the orchestrator's turns are past the deck's threshold."""
        lines = self.history("")
        settings = self._settings
        if not lines or self._conversation is not None or not settings.compact_after:
            return False
        if len(lines) >= 2 * settings.compact_after:
            return True
        most = settings.compact_tokens
        return (
            most is not None
            and len(lines) > 2 * settings.compact_keep
            and sum(tokens(line.text) for line in lines) >= most
        )

    def tidy(self, ctx: RunContext) -> None:
        """Begins to sum up old turns beside this one, when there are too many; their summary holds
        from the next turn on."""
        if self.crowded:
            self._tidying = asyncio.create_task(
                self.compact(ctx), name=f"compaction {ctx.turn.log.turn_id}"
            )

    async def settle(self, seconds: float) -> None:
        """Gives that so many seconds to end, then stops it. A stop of the turn that comes now
        changes nothing of its answer."""
        task = self._tidying
        clock = asyncio.get_running_loop().time
        if task is None:
            return
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task}, timeout=seconds)
        task.cancel()
        over = clock() + GRACE
        while not task.done() and clock() < over:  # what does not end then is left behind
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task}, timeout=over - clock())

    async def compact(self, ctx: RunContext) -> None:
        """Sums up the turns before the newest ones, with what was summed up before; when that fails, nothing changes.

        Where failures left more turns than are read at once, the oldest come first, a few at a time.
        """
        lines = self.history("")
        order = list(dict.fromkeys([line.turn_id for line in lines]))
        whole = set(order[-self._settings.compact_keep :])
        if len(lines) == self._most:
            through = self._summary.get("through")
            who = self._session.principal
            lines = self._store.history(self._session.id, "", -LINES // 2, through, who)
            whole.add(lines[-1].turn_id)  # it may be cut
        old: list[Message] = []
        for line in lines:
            if line.turn_id not in whole:
                old.append(line)
        early = {line.turn_id for line in old}
        if not early:
            return
        text = await run_job(SUMMARY, self._material(old), "Sum up the conversation so far.", ctx)
        before = sum([tokens(line.text) for line in old]) + tokens(self._summary.get("text", ""))
        if text:
            after = tokens(text)
        else:
            after = before
        ctx.emit(
            Compacted(
                done=text is not None,
                turns=len(early),
                kept=len(order) - len(early),
                before=before,
                after=after,
            )
        )
        if text is not None:
            turns = self._summary.get("turns", 0) + len(early)
            summary = {"text": text, "through": old[-1].turn_id, "turns": turns}
            self._new["summary"] = Note(value=json.dumps(summary), at=time.time())

    def _material(self, lines: Iterable[Message]) -> list[BaseMessage]:
        if self._summary:
            summary = [AIMessage(f"Earlier: {self._summary['text']}")]
        else:
            summary = []
        return [*summary, *messages_of(lines)]

    # response chains

    def _chained(self, reader: str, lines: list[Message]) -> list[Message]:
        """Names the provider's response on the newest line, where its chain holds exactly the turns
        told here (decisions 13)."""
        note = self._notes[f"chain:{reader}"]
        end = note.fields("turn", "after", "id")
        if end is None:
            return lines
        order = list(dict.fromkeys(line.turn_id for line in lines))
        continues = order[-1:] == [end["turn"]] and ["", *order][-2] == end["after"]
        if not continues or lines[-1].role != "assistant" or time.time() - note.at > CHAIN_LAPSE:
            return lines
        return [*lines[:-1], lines[-1].model_copy(update={"response_id": end["id"]})]

    def remember(
        self, turn: TurnRecord, ctx: RunContext, agents: Mapping[str, Agent]
    ) -> Mapping[str, Note]:
        """What the episode keeps of this turn beside its narration: a new summary, the ends of response chains."""
        last: dict[str, str] = {}
        last_text = ""
        for event in ctx.turn.log.events:
            if event.body.__class__ is ModelEnded:
                body = cast(ModelEnded, event.body)
                if body.response_id:
                    last[body.agent] = body.response_id
                if body.agent == ctx.path:
                    last_text = body.text
        if last_text.strip() != turn.text.strip():
            last.pop(ctx.path, None)  # the user read other words than the provider remembers
        if last:
            self._keep_chains(last, turn, ctx, agents)
        # The note is kept beside the events, so nothing else takes a secret of the user's words out of it.
        secrets = ctx.turn.log.secrets
        self._keep_owed([without_secret_words(part, secrets) for part in ctx.turn.owed_parts])
        return self._new

    @property
    def owed(self) -> tuple[str, ...]:
        """What the last turn left out and offered to take next, in the user's words."""
        note = self._notes.get(OWED)
        if note is not None:
            return tuple(json.loads(note.value))
        return ()

    def _keep_owed(self, parts: Sequence[str]) -> None:
        """Keeps what this turn left out for the next one; a turn that left nothing out clears what was kept."""
        if parts or self.owed:
            self._new[OWED] = Note(
                value=json.dumps(list(parts), ensure_ascii=False), at=time.time()
            )

    def _keep_chains(
        self,
        last: Mapping[str, str],
        turn: TurnRecord,
        ctx: RunContext,
        agents: Mapping[str, Agent],
    ) -> None:
        answer_counts = Counter(
            outcome.agent for outcome in ctx.turn.outcomes if isinstance(outcome, Answer)
        )
        for agent, response_id in last.items():
            model = getattr(agents.get(agent), "model", None)
            if (
                not isinstance(model, BoundModel)
                or model.spec.api != "responses"
                or getattr(agents[agent], "composer", None)
            ):
                continue  # what another model composed is no link of this one's chain
            lead = agent == ctx.path
            if (lead and turn.status == "ok") or answer_counts[agent] == 1:
                if lead:
                    reader = ""
                else:
                    reader = agent
                lines = self.history(reader)
                end = {
                    "id": response_id,
                    "turn": turn.id,
                    "after": lines[-1].turn_id if lines else "",
                }
                self._new[f"chain:{reader}"] = Note(value=json.dumps(end), at=time.time())


def _line(item: ShownComponent) -> str:
    return f"{item.position}. {item.type} {item.id}: {_title(item)}"


def _title(item: ShownComponent) -> str:
    return " ".join(item.title.split())[:80]
