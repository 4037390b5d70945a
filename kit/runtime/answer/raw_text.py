"""Raw text: what the machinery says to itself and no person may read. Found in a text, and cut out of one."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import get_args

from kit.core.bodies.call import Envelope, ModelEnded, ToolEnded, ToolStarted
from kit.core.language.words import SENTENCE_END
from kit.core.outcome import Answer, Failure, Reason
from kit.models.json_calls import NAME_KEYS, take_calls
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
_REASONS: frozenset[str] = frozenset(reason for reason in get_args(Reason) if "_" in reason)
RUN = 4
"""So many words in a row are no accident."""


def looks_raw(text: str) -> bool:
    """True when a text holds something shaped like raw text: the cheap question, asked of everything that streams.

    The pattern takes 0.3 ms for 900 characters; looking for what it cannot do without takes a hundredth of that.
    """
    # the i of other alphabets
    lower = text.casefold().replace("\u0131", "i").replace("\u0307", "")
    for phrase in _OWN_WORDS:
        if phrase in lower:
            return True
    for hint in _HINTS:
        if hint in lower:
            return _SHAPES.search(text) is not None
    return _CODE.search(text) is not None and _SHAPES.search(text) is not None


OWN_WORDS = re.compile("|".join(re.escape(phrase) for phrase in _OWN_WORDS), re.IGNORECASE)
"""Any of what the kit says to models."""


def only_repeats(text: str) -> bool:
    """Whether each sentence of a reply hands on what the kit told its model."""
    sentences = filter(str.strip, SENTENCE_END.split(text))
    return all(OWN_WORDS.search(sentence) for sentence in sentences)


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
    has_pairs = _SLASH_OR_DOT.search(text) is not None and _PAIR.search(text) is not None
    has_failed = _has_failed(turn)
    if looks or has_pairs:
        pieces += _identifiers(text.lower(), turn)
    if looks or has_failed:
        allowed = _words_in_use(turn)
        if looks:
            for match in _SHAPES.finditer(text):
                if match[0].lower().rstrip("./-") not in allowed:
                    pieces.append(match[0])
            pieces += _own_words(text.casefold(), turn)
        if has_failed:
            pieces += _echoes(text, *_raw_reasons(turn), allowed)
    return tuple(dict.fromkeys(pieces))


def _has_failed(turn: TurnState) -> bool:
    """Whether an agent or one of its lookups failed: only then are there raw reasons that a text may repeat."""
    for outcome in turn.outcomes:
        if outcome.kind == "failure" or outcome.data_faults:
            return True
    return False


def scrub(text: str, ctx: RunContext) -> str:
    """The text without the sentences that hold raw text; the rest word for word."""
    pieces = leaks(text, ctx)
    if not pieces:
        return text
    if text in pieces:
        return ""
    lines: list[str] = []
    for line in text.splitlines():
        sentences = [sentence for sentence in SENTENCE_END.split(line) if not leaks(sentence, ctx)]
        kept = " ".join(sentences)
        if kept.strip():
            lines.append(kept)
    return "\n".join(lines).strip()


def _words_in_use(turn: TurnState) -> str:
    """Returns what the user, the answers in hand and earlier turns said, in lower case: their words leak nothing."""
    texts = [call.query for call in turn.calls]
    for event in turn.log.events[:3]:
        if event.body.kind == "turn_started":
            texts.append(event.body.message)
    texts += [outcome.text for outcome in turn.outcomes if isinstance(outcome, Answer)]
    texts += [message.text for message in turn.memory.history("")]
    return "\n".join(texts).lower()


def _raw_reasons(turn: TurnState) -> tuple[list[str], list[str]]:
    """Returns the raw reasons of all failures of the turn so far, and the words in which agents declined.

    Reasons belong on the trace and nowhere else; the composing model is told that it may pass on how an agent declined.
    """
    reasons: dict[str, None] = {}
    refusals: list[str] = []
    for outcome in turn.outcomes:
        if not isinstance(outcome, Failure):
            continue
        reasons[outcome.detail] = None
        if outcome.reason == "refusal" and outcome.suggestion:
            refusals.append(outcome.suggestion)
    for event in turn.log.events:
        if isinstance(event.body, ToolEnded | ModelEnded) and event.body.error:
            reasons[event.body.error] = None
    return [reason for reason in reasons if reason and reason not in refusals], refusals


def _own_words(lower: str, turn: TurnState) -> Iterator[str]:
    """Yields the phrases of the kit's own that a text repeats, other than those that the user brought."""
    message = turn.message.lower()
    for phrase in _OWN_WORDS:
        if phrase in lower and phrase not in message:
            yield phrase


def _identifiers(lower: str, turn: TurnState) -> Iterator[str]:
    names = [*turn.settings.vocabulary, *_REASONS]
    names += [f"ask_{call.agent}" for call in turn.calls]
    for event in turn.log.events:
        body = event.body
        if isinstance(body, ToolStarted) and "_" in body.tool:
            names.append(body.tool)
        # Models write the two halves of an enricher's name with either mark between them.
        elif isinstance(body, Envelope):
            names.append(f"{body.domain_type}/{body.enricher_id}")
            names.append(f"{body.domain_type}.{body.enricher_id}")
    for name in names:
        if name.lower() in lower:
            yield name


def _echoes(
    text: str, reasons: Iterable[str], refusals: Iterable[str], words_in_use: str
) -> Iterator[str]:
    """Yields the odd words of raw reasons, and runs of their words, that a text repeats."""
    lower = text.lower()
    allowed = "\n".join([words_in_use, *refusals]).lower()
    text_words = " ".join(_words(lower))
    allowed_words = " ".join(_words(allowed))
    for reason in reasons:
        raw = _words(reason)
        for word in raw:
            lower_word = word.lower()
            if len(word) < 4 or not _ODD.search(word) or lower_word in allowed:
                continue
            if lower_word in lower:
                yield word
        if len(raw) < 2:
            continue
        # One word of an error may be anybody's; a run of them is the error.
        size = min(RUN, len(raw))
        for start in range(len(raw) - size + 1):
            run = " ".join(raw[start : start + size]).lower()
            if f" {run} " in f" {text_words} " and run not in allowed_words:
                yield run


def _words(text: str) -> list[str]:
    stripped = [word.strip(".:!?*") for word in _WORD.findall(text)]
    return [word for word in stripped if word]


OPENINGS = ("{", "[{", "```json", "<tool", "<function")
"""How a text begins that may be such a call: nobody reads it before all of it is there."""
_NAME_FIELD = re.compile(rf'"(?:{"|".join(NAME_KEYS)})"\s*:\s*"([^"]{{1,100}})"')
_PYTHON = re.compile(r"\A\s*(?:```\w*\s|<\w+>\s*)?([A-Za-z_][\w.]*)\(")


def is_written_call(text: str, tools: Collection[str] = ()) -> bool:
    """Whether a reply is a tool call written as text: JSON of a name with arguments and nothing beside it, or a call of
    a tool of `tools` anywhere in it.
    """
    # With its arguments: a person may be told to call `look_up(query)`.
    for tool in tools:
        if f"{tool}({{" in text:
            return True
    python = _PYTHON.match(text)
    names = _NAME_FIELD.findall(text)
    if python is not None and text.rstrip("` \n").endswith(")"):
        names.append(python[1])
    if not names:
        return False
    if any(name in tools for name in names):
        return True
    words, calls = take_calls(text, names)
    return bool(calls) and not words
