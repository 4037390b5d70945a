"""The support service: answers from help articles, streamed sentence by sentence, in conversations that lapse."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from kit.worlds.consumer.rows import Article
from kit.worlds.consumer.world import World
from kit.worlds.service.search import GRAMMAR, query_terms, tokens

LAPSE = 55 * 60.0
"""Seconds after its last question until a conversation cannot be continued."""
FIRST = 0.4
NEXT = 0.12
"""Seconds to the first sentence and between sentences, at pace 1."""
NOTHING = (
    "I could not find a help article about that. Tell me which part of the app it is "
    "about, or choose Contact us in Help."
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
Lines = AsyncGenerator[bytes, None]
Faults = Callable[[Mapping[str, str], Lines], Lines]
"""Given the headers and the honest lines: yields what is sent."""


def no_faults(headers: Mapping[str, str], lines: Lines) -> Lines:
    """Nothing goes wrong."""
    return lines


class Question(BaseModel):
    """The body of POST /v1/ask."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    query: str
    conversation_id: str | None = None
    category: str | None = None
    context: str | None = None
    """What earlier turns were about; helps to find the article when the query alone does not."""


@dataclass
class _Conversation:
    principal: str
    last: float
    article: Article | None = None


def support_app(world: World, *, pace: float = 0.0, faults: Faults = no_faults) -> Starlette:
    """The service over a world's help articles; `pace` 1 takes its time, 0 answers at once."""
    service = _Service(world, pace, faults)
    return Starlette(
        routes=[
            Route("/v1/ask", service.ask, methods=["POST"]),
            Route("/v1/metrics", service.metrics),
        ]
    )


@dataclass(frozen=True)
class _Service:
    world: World
    pace: float
    faults: Faults
    conversations: dict[str, _Conversation] = field(default_factory=dict[str, _Conversation])
    counts: Counter[str] = field(default_factory=Counter[str])

    async def metrics(self, _: Request) -> JSONResponse:
        """Counters since the service started."""
        return JSONResponse(dict(sorted(self.counts.items())))

    async def ask(self, http: Request) -> JSONResponse | StreamingResponse:
        """Lines of JSON: one `opened`, a `text` for each sentence, one `closed`."""
        self.counts["requests"] += 1
        principal = http.headers.get("x-principal")
        if not principal:
            return JSONResponse({"error": "missing_principal"}, status_code=400)
        try:
            question = Question.model_validate_json(await http.body())
        except ValidationError:
            return JSONResponse({"error": "bad_request"}, status_code=400)
        lines = self.faults(http.headers, self._answer(question, principal))
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def _answer(self, question: Question, principal: str) -> Lines:
        key, continued = self._open(question.conversation_id, principal)
        yield line_of(kind="opened", conversation_id=key, continued=continued, principal=principal)
        conversation = self.conversations[key]
        article = self._find(question, conversation)
        conversation.article = article or conversation.article
        delay = FIRST
        for sentence in _SENTENCE.split(article.text if article else NOTHING):
            await asyncio.sleep(delay * self.pace)
            yield line_of(kind="text", text=sentence)
            delay = NEXT
        yield line_of(kind="closed", article=article.id if article else None)

    def _open(self, wanted_key: str | None, principal: str) -> tuple[str, bool]:
        """The conversation with the wanted key when it is this principal's and has not lapsed, else a new one."""
        now = asyncio.get_running_loop().time()
        for key in [
            key
            for key, conversation in self.conversations.items()
            if now - conversation.last > LAPSE
        ]:
            del self.conversations[key]
        conversation = self.conversations.get(wanted_key or "")
        if wanted_key and conversation and conversation.principal == principal:
            conversation.last = now
            return wanted_key, True
        self.counts["conversations"] += 1
        key = f"sc-{self.counts['conversations']:06}"
        self.conversations[key] = _Conversation(principal, now)
        return key, False

    def _find(self, question: Question, conversation: _Conversation) -> Article | None:
        """By the words of the question; a question without any stays with the article of the conversation."""
        topics = self._topics(question.category)
        texts = [question.query, f"{question.query} {question.context or ''}"]
        for text in texts:
            result = self.world.article_index.search(text, as_list=False)
            if result.match == "named":
                return next(
                    (article for article in result.rows if article.topic in topics), result.rows[0]
                )
        if conversation.article and not query_terms(question.query, GRAMMAR):
            return conversation.article
        return next(
            (article for article in self.world.articles if article.topic in topics),
            conversation.article,
        )

    def _topics(self, category: str | None) -> set[str]:
        words = set(tokens((category or "").replace("_", " ")))
        return {
            article.topic
            for article in self.world.articles
            if words & set(tokens(article.topic.replace("_", " ")))
        }


def line_of(**fields: Any) -> bytes:
    """One line of an answer."""
    return json.dumps(fields).encode() + b"\n"
