"""Answers put together from what tools said: facts verbatim, failures owned up to, nothing invented."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kit.core.language import small_talk
from kit.core.language.clauses import OPENERS
from kit.core.language.words import STOP, words
from kit.models.json_prose import prose
from kit.models.offline import english
from kit.models.offline.json_words import in_words
from kit.models.offline.phrases import ENGLISH, Phrases
from kit.models.offline.similarity import closeness, content, spoken

MOST = 900
"""Characters of one result that are kept whole; of a longer one the sentences closest to the request are kept."""
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9$€£])|\n+")
_NO_ANSWER = re.compile(r"\A\s*No answer from (?P<part>[^:]+?)(?:: (?P<why>.+?))?\.(?:\s|$)", re.S)
_NOT_ASKED = re.compile(r"\A\s*Not asked: (?P<part>.+?)\.(?:\s|$)", re.S)
UNMATCHED = re.compile(
    r"\A\s*(?:No \w[^\"\n]{0,80}? (?:for|called)|There is no \w[^\"\n]{0,60}? called) \""
)
"""How a tool says that it found nothing of what it was asked for."""
_UNSPOKEN = re.compile(r"\bdo not speak of this\b")
_ROW_ID = re.compile(r"^[a-z]{2}-\d{3,} ", re.M)
"""The id of a row, for models that answer by a schema; nobody says it."""
_NOTE = re.compile(r"\(Note: (?P<note>(?:(?!\(Note: ).)+)\)\s*\Z", re.S)
_LOOKS = frozenset(
    {"find", "get", "search", "look", "list", "read", "fetch", "check", "show", "query", "load"}
)
"""Verbs that names of lookups begin with."""
_INSTRUCTION = re.compile(r"^(?:say|tell the user|do not|don't|claim|offer)\b", re.I)


_ENDS = ".!?…:;,\"”')"
_BREAKS = STOP | english.VERBS | {"near", "nearby"}


@dataclass(frozen=True, slots=True)
class Result:
    """What came back for one call."""

    tool: str
    """The tool's name as bound."""
    text: str
    failed: bool = False

    @property
    def label(self) -> str:
        return spoken(self.tool.removeprefix("ask_"))

    @property
    def of_agent(self) -> bool:
        """Whether it has a name fit for a person: an agent's, not a lookup's."""
        return self.tool.startswith("ask_")


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, verbatim."""
    texts: list[str] = []
    for piece in _SENTENCE.split(text):
        if piece and piece.strip():
            texts.append(piece.strip())
    return texts


def compose(request: str, results: Sequence[Result], phrases: Phrases = ENGLISH) -> str:
    """One answer from the results of sub-agents, in order, each fact once; what failed is named at the end."""
    parts: list[str] = []
    failures: list[str] = []
    earlier: set[str] = set()
    results = [
        result for result in results if not (result.failed and _UNSPOKEN.search(result.text))
    ]
    named = all(result.of_agent for result in results if result.tool)
    several = named and sum(not own_up(result) for result in results) > 1
    for result in results:
        failure = own_up(result, phrases)
        if failure:
            failures.append(failure)
            continue
        text, note = _split_note(result.text)
        body = _drop_repeats(extract(request, prose(text)), earlier)
        if body:
            body = itemised(body)
            parts.append(f"**{result.label.capitalize()}:** {body}" if several else body)
        if note and note.rstrip(".").lower() not in body.lower():
            parts.append(phrases.reserved.format(part=result.label, note=note.rstrip(".")))
    unique = list(dict.fromkeys(failures))
    return "\n\n".join([*parts, *([" ".join(unique)] if unique else [])]) or phrases.nothing


def itemised(text: str) -> str:
    """The same words, with a sentence that lists three things or more as a list: an item a line."""
    lines: list[str] = []
    for piece in sentences(text):
        head, colon, rest = piece.partition(": ")
        items = rest.split("; ")
        if colon and len(items) >= 3 and ";" not in head:
            lines += [f"{head}:", *(f"- {item}" for item in items), ""]
        elif lines and lines[-1]:
            lines[-1] += f" {piece}" if lines[-1][-1] in _ENDS else f"; {piece}"
        else:
            lines.append(piece)
    return "\n".join(lines).strip()


def own_up(result: Result, phrases: Phrases = ENGLISH) -> str:
    """The plain sentence owed for a part that was not answered; empty when it was."""
    if skip := _NOT_ASKED.match(result.text):
        return phrases.left_out.format(part=skip["part"])
    if missing := _NO_ANSWER.match(result.text):
        if missing["why"]:
            return phrases.no_answer_because.format(part=missing["part"], why=missing["why"])
        return phrases.no_answer.format(part=missing["part"])
    if not result.failed:
        return ""
    if result.of_agent:
        return phrases.no_answer.format(part=result.label)
    return phrases.failed


def answer(request: str, results: Sequence[Result]) -> str:
    """A worker's answer: the results closest to the request first; missing data said plainly."""
    good: list[Result] = []
    for result in results:
        if not result.failed and result.text.strip():
            good.append(result)
    bad: list[Result] = []
    for r in results:
        if (r.failed or not r.text.strip()) and not _UNSPOKEN.search(r.text):
            bad.append(r)
    ranks = closeness(request, [result.text[:MOST] for result in good])
    by_closeness = [
        result for _, result in sorted(zip(ranks, good, strict=True), key=lambda pair: -pair[0])
    ]
    earlier: set[str] = set()
    texts: list[str] = []
    notes: list[str] = []
    for result in by_closeness:
        text, note = _split_note(in_words(result.text))
        texts.append(_drop_repeats(extract(request, _ROW_ID.sub("", text)), earlier))
        notes.extend([f"(Note: {note})"] if note else [])
    lines = [text for text in texts if text]
    lines += [
        f"I could not look up {_thing(result.label)}: it is not available right now."
        for result in bad[:3]
    ]
    return (
        "\n\n".join([*dict.fromkeys(lines), *dict.fromkeys(notes)])
        or "There is nothing to report on that."
    )


def _thing(label: str) -> str:
    """What a lookup is after, by its name without the verb: `find room` gives `the room`."""
    verb, _, rest = label.partition(" ")
    return f"the {rest if rest and verb in _LOOKS else label}"


def extract(request: str, text: str, limit: int = MOST) -> str:
    """The text itself when it is short, else its sentences closest to the request, in their own order."""
    text = text.strip()
    if len(text) <= limit:
        return text
    pieces = sentences(text[: 12 * limit])[:300]
    ranks = closeness(request, pieces)
    room = limit
    positions = set[int]()
    for i in sorted(range(len(pieces)), key=lambda i: -(ranks[i] + (0.1 if i == 0 else 0.0))):
        if len(pieces[i]) <= room:
            positions.add(i)
            room -= len(pieces[i]) + 1
    return " ".join(pieces[i] for i in sorted(positions)) or cut(text, limit)


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, ended at a word."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    return text[: max(0, limit - 1)].rsplit(" ", 1)[0].rstrip(" ,;:")[: max(0, limit - 1)] + (
        "…" if limit > 0 else ""
    )


def _split_note(text: str) -> tuple[str, str]:
    note = _NOTE.search(text)
    if note:
        return (text[: note.start()].strip(), note["note"].strip())
    return (text.strip(), "")


def _drop_repeats(text: str, earlier: set[str]) -> str:
    """The text without sentences said before, its line breaks kept."""
    lines: list[str] = []
    for line in text.splitlines():
        fresh: list[str] = []
        for piece in sentences(line):
            if _is_new(piece, earlier):
                fresh.append(piece)
        if fresh or not line.strip():
            lines.append(" ".join(fresh))
    return "\n".join(lines).strip()


def _is_new(piece: str, earlier: set[str]) -> bool:
    key = " ".join(words(piece))
    if not key:
        return True
    if _INSTRUCTION.match(piece) and "part" in key:
        return False
    if key in earlier:
        return False
    earlier.add(key)
    return True


def preamble(names: Sequence[str]) -> str:
    """One short sentence that names whom the request goes to. It holds no word of the user's: what was typed may be an
    insult, a fragment, or five thousand letters."""
    unique = list(dict.fromkeys(names))
    if len(unique) == 1:
        enumeration = unique[0]
    else:
        enumeration = f"{', '.join(unique[:-1])} and {unique[-1]}"
    return f"Let me check with {enumeration}."


def subject(text: str, most: int = 5) -> str:
    """The noun phrase a clause is about: what stands after its lead-in, up to the next function
    word; empty when unclear."""
    rest = english.LEAD_IN.sub("", text.strip(), count=1)
    first, _, more = rest.partition(" ")
    if rest == text.strip() and first.lower() in OPENERS:
        rest = more
    phrase: list[str] = []
    for raw in rest.split()[: most + 1]:
        bare = raw.strip(".,;:!?\"'()").lower().replace("’", "'")
        inner = bare == "of" and phrase
        if (
            not bare
            or len(phrase) == most
            or (not inner and (bare in _BREAKS or bare.endswith("n't")))
        ):
            break
        phrase.append(raw.strip('.,;:!?"()'))
        if raw[-1] in ".,;:!?":
            break
    if phrase and text.strip().startswith(phrase[0]) and phrase[0][1:].islower():
        phrase[0] = phrase[0].lower()  # it only began the sentence
    return " ".join(phrase).removesuffix(" of")


def chat(request: str, phrases: Phrases = ENGLISH) -> str:
    """A short friendly line for small talk."""
    if small_talk.WELL_BEING.search(request):
        return phrases.well
    if small_talk.THANKS.search(request):
        return phrases.welcome
    if small_talk.GOODBYE.search(request):
        return phrases.goodbye
    if small_talk.GREETING.search(request):
        return phrases.hello
    return phrases.agreed


def outside(names: Sequence[str], phrases: Phrases = ENGLISH) -> str:
    """Says plainly that nothing here answers the request."""
    if not names:
        return phrases.outside
    listing = ", ".join(names[:5]) + (phrases.more_topics if len(names) > 5 else "")
    return phrases.outside_with_topics.format(topics=listing)


def from_context(request: str, context: str, own: str = "") -> str:
    """An answer found in given text, else in the user's own earlier words, or a plain statement that there is none."""
    if text := _closest(request, context):
        return text
    if text := _closest(request, own):
        return f"You told me “{text.rstrip('.')}”; I have nothing beyond that."
    return "I have nothing to go on for that: no tool and no text I was given answers it."


def _closest(request: str, context: str) -> str:
    """The one or two sentences that answer a request, if any do."""
    pieces = [piece for piece in sentences(context[:20_000]) if len(words(piece)) > 3][:200]
    ranks = closeness(request, pieces)
    query_words: set[str] = set()
    for word in content(request):
        if word not in STOP:
            query_words.add(word)
    best = [
        i
        for i in sorted(range(len(pieces)), key=lambda i: -ranks[i])[:2]
        if ranks[i] >= 0.45 and query_words & set(words(pieces[i]))
    ]
    return " ".join(pieces[i] for i in sorted(best))
