"""Raw text: what the machinery says to itself and no person may read. Found in a text, and cut out of one."""

import re
from collections.abc import Iterable, Iterator
from typing import get_args

from kit.core.bodies.call import Envelope, ModelEnded, ToolEnded, ToolStarted
from kit.core.outcome import Answer, Failure, Reason
from kit.runtime.answer.written_call import is_written_call
from kit.runtime.context import RunContext, TurnState

_SHAPES = re.compile(
    r"""(?<![\w./-])[\w./-]*[A-Za-z0-9]_[A-Za-z0-9][\w./-]*        # an identifier: no plain word holds an underscore
      | \b[A-Z][A-Za-z]+(?:Error|Exception|Timeout)\b              # the name of an exception
      | \bTraceback\b | \bFile\ "[^"\n]*",\ line\ \d+
      | (?i:\b(?:http|status|errno|code|error)\b[\s:=#"']{1,4}(?:code\s)?[45]\d\d\b)
      | (?i:\b[45]\d\d\s+(?:service|internal|bad|gateway|not\ found|forbidden|unauthori[sz]ed|too\ many)\b
      |\berrno\W{1,3}\d+)
      | (?i:\bstatus\s*=\s*"?\w+)""",
    re.X,
)
_OWN_WORDS = (
    "say plainly",
    "claim nothing for",
    "too many parts in one message",
    "write the answer again",
    "the other results are all there is",
    "shown beside it, not",
    "call was not made",
    "its arguments could not be read",
    "its arguments do not fit",
    "you have no such tool",
    "do not speak of this",
    "it takes over after you",
    "nothing of this as fact",
    "state that you could not get",
    "use everyday words only",
    "no figure and no fact",
    "end the step here",
    "call one tool at a time",
)
"""What the kit says to models and to nobody else. An agent that repeats it in its answer makes it no more readable."""
_NAMES = "_ error exception timeout traceback errno http status code"
_HINTS = (
    *_NAMES.split(),
    'file "',
)
"""Without one of these, or such a number, none of the shapes is there. Where case is free they hold
no `i` and no `k`: other letters than the big ones are taken for those too."""
_CODE = re.compile(r"[45]\d\d\s+(?i:[sibgnfut])")
_SLASH_OR_DOT = re.compile(r"[/.]\w")
_PAIR = re.compile(r"\b[A-Za-z]\w*[/.]\w+\b")
_WORD = re.compile(r"[^\s\"'`()\[\]{},;<>]+")
_ODD = re.compile(r"\d|[_/=@\\]|\w[.:]\w|[a-z][A-Z]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_REASONS: frozenset[str] = frozenset(reason for reason in get_args(Reason) if "_" in reason)
RUN = 4
"""So many words in a row are no accident."""


def looks_raw(text: str) -> bool:
    """True when a text holds something shaped like raw text: the cheap question, asked of everything that streams.

    The pattern takes 0.3 ms for 900 characters; looking for what it cannot do without takes a hundredth of that.
    """
    lower = text.casefold().replace("\u0131", "i").replace("\u0307", "")  # the i of other alphabets
    for phrase in _OWN_WORDS:
        if phrase in lower:
            return True
    for hint in _HINTS:
        if hint in lower:
            return _SHAPES.search(text) is not None
    return _CODE.search(text) is not None and _SHAPES.search(text) is not None


def leaks(text: str, ctx: RunContext) -> tuple[str, ...]:
    """Pieces of raw text that a composed text holds, each once.

    Identifiers of the turn (tools, calls, statuses, reasons, enrichers), the words of its own failures and what the kit
    says to models always count; anything else that only looks raw does not when the user or an answer in hand used it
    first.
    """
    turn = ctx.turn
    pieces: list[str] = []
    for call in turn.calls:
        if call.call_id in text and len(call.call_id) > 5:
            pieces.append(call.call_id)
    if turn.log.turn_id in text:
        pieces.append(turn.log.turn_id)
    if is_written_call(text):
        pieces.append(text)
    looks = looks_raw(text)
    pairs = _SLASH_OR_DOT.search(text) and _PAIR.search(text)
    failed: list[Failure | Answer] = []
    for outcome in turn.outcomes:
        if outcome.kind == "failure" or outcome.data_faults:
            failed.append(outcome)
    if looks or pairs or failed:
        if looks or failed:
            allowed = words_in_use(turn)
        else:
            allowed = ""
        pieces += _identifiers(text.lower(), turn) if looks or pairs else ()
        pieces += (
            [
                hit[0]
                for hit in _SHAPES.finditer(text)
                if hit[0].lower().rstrip("./-") not in allowed
            ]
            if looks
            else ()
        )
        pieces += _own_words(text.casefold(), turn) if looks else ()
        if failed:
            passed_on = "\n".join([allowed, *_refusals(turn)])
            pieces += _echoes(text, raw_reasons(turn), passed_on)
    return tuple(dict.fromkeys(pieces))


def scrub(text: str, ctx: RunContext) -> str:
    """The text without the sentences that hold raw text; the rest word for word."""
    pieces = leaks(text, ctx)
    if not pieces:
        return text
    if text in pieces:
        return ""
    lines = (
        " ".join(s for s in _SENTENCE.split(line) if not leaks(s, ctx))
        for line in text.splitlines()
    )
    return "\n".join(line for line in lines if line.strip()).strip()


def words_in_use(turn: TurnState) -> str:
    """Returns what the user, the answers in hand and earlier turns said, in lower case: their words leak nothing."""
    answers = (o.text for o in turn.outcomes if isinstance(o, Answer))
    earlier = (message.text for message in turn.memory.history(""))
    message = (
        event.body.message for event in turn.log.events[:3] if event.body.kind == "turn_started"
    )
    return "\n".join([*(call.query for call in turn.calls), *message, *answers, *earlier]).lower()


def raw_reasons(turn: TurnState) -> list[str]:
    """Returns the raw reasons of all failures of the turn so far; they belong on the trace and nowhere else.

    The words in which an agent declined are none of them: the composing model is told that it may pass them on.
    """
    failures: list[Failure] = []
    for outcome in turn.outcomes:
        if isinstance(outcome, Failure):
            failures.append(outcome)
    may_be_said: set[str | None] = set()
    for failure in failures:
        if failure.reason == "refusal":
            may_be_said.add(failure.suggestion)
    reasons = [failure.detail for failure in failures]
    for event in turn.log.events:
        if isinstance(event.body, ToolEnded | ModelEnded) and event.body.error:
            reasons.append(event.body.error)
    distinct = dict.fromkeys(reasons)
    texts: list[str] = []
    for reason in distinct:
        if reason and reason not in may_be_said:
            texts.append(reason)
    return texts


def _refusals(turn: TurnState) -> Iterator[str]:
    """Yields the words in which agents declined: the composing model is given them to pass on."""
    for outcome in turn.outcomes:
        if isinstance(outcome, Failure) and outcome.reason == "refusal" and outcome.suggestion:
            yield outcome.suggestion.lower()


def _own_words(lower: str, turn: TurnState) -> Iterator[str]:
    """Yields the phrases of the kit's own that a text repeats, other than those that the user brought."""
    message = turn.message.lower()
    for phrase in _OWN_WORDS:
        if phrase in lower and phrase not in message:
            yield phrase


def _identifiers(lower: str, turn: TurnState) -> Iterator[str]:
    tools: set[str] = set()
    for e in turn.log.events:
        if isinstance(e.body, ToolStarted) and "_" in e.body.tool:
            tools.add(e.body.tool)
    asks = {f"ask_{call.agent}" for call in turn.calls}
    yield from (
        name
        for name in (*turn.settings.vocabulary, *_REASONS, *tools, *asks)
        if name.lower() in lower
    )
    envelopes = (e.body for e in turn.log.events if isinstance(e.body, Envelope))
    pairs: set[str] = set()
    for e in envelopes:
        for mark in "/.":
            pairs.add(f"{e.domain_type}{mark}{e.enricher_id}")
    yield from (pair for pair in pairs if pair.lower() in lower)


def _echoes(text: str, reasons: Iterable[str], allowed: str) -> Iterator[str]:
    """Yields the odd words of raw reasons, and runs of their words, that a text repeats."""
    lower = text.lower()
    text_words = " ".join(_words(lower))
    allowed_words = " ".join(_words(allowed))
    for reason in reasons:
        raw = _words(reason)
        for word in raw:
            if (
                len(word) > 3
                and _ODD.search(word)
                and word.lower() in lower
                and word.lower() not in allowed
            ):
                yield word
        if len(raw) < 2:
            continue
        size = min(RUN, len(raw))
        for start in range(len(raw) - size + 1):
            run = " ".join(raw[start : start + size]).lower()
            if f" {run} " in f" {text_words} " and run not in allowed_words:
                yield run


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in (raw.strip(".:!?*") for raw in _WORD.findall(text)):
        if word:
            words.append(word)
    return words
