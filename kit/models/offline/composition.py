"""Answers put together from what tools said: facts verbatim, failures owned up to, nothing invented."""

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from kit.core.display.agent_name import heading
from kit.core.language import small_talk
from kit.core.language.words import STOP, words
from kit.models.json_prose import WORDLESS, prose
from kit.models.offline.phrases import ENGLISH, Phrases
from kit.models.offline.similarity import closeness, content

MOST = 1_500
"""Characters of one result that are said whole; of a longer one the items closest to the request are said."""
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9$€£])|\n+")
_ITEM = re.compile(r"(?<=[.!?;])\s+|\n+")
"""Between two items of a long text: its sentences, its lines, and what a semicolon ends."""
_NO_ANSWER = re.compile(r"\A\s*No answer from (?P<part>[^:]+?)(?:: (?P<why>.+?))?\.(?:\s|$)", re.S)
_NOTHING_ON = re.compile(r"\A\s*No answer from (?P<part>[^:“]+) to (?P<request>“[^”]+”): ")
_NOT_ASKED = re.compile(r"\A\s*Not asked: (?P<part>.+?)\.(?:\s|$)", re.S)
UNMATCHED = re.compile(
    r"\A\s*(?:No \w[^\"\n]{0,80}? (?:for|called)|There is no \w[^\"\n]{0,60}? called) \""
)
"""How a tool says that it found nothing of what it was asked for."""
_GO_AHEAD = re.compile(r"\b(?:do (?:it|that|so)|go ahead|again|hazlo|adelante|hágalo)\b", re.I)
"""Asks for an act by words that name none. Said to a question of the kit's own, it never comes here."""
_UNSPOKEN = re.compile(r"\bdo not speak of this\b")
_ROW_ID = re.compile(r"^[a-z]{2}-\d{3,} ", re.M)
"""The id of a row, for models that answer by a schema; nobody says it."""
_FOR_NOBODY = re.compile(r"\A\s*For nobody here: (?P<part>.+?)\.(?:\s|$)", re.S)
_NOTE = re.compile(r"\(Note: (?P<note>(?:(?!\(Note: ).)+)\)\s*\Z", re.S)
_ENDS = ".!?…:;,\"”')"


@dataclass(frozen=True, slots=True)
class Result:
    """What came back for one call."""

    tool: str
    """The tool's name as bound."""
    text: str
    failed: bool = False
    label: str = ""
    """What people read in place of the tool's name."""

    @property
    def of_agent(self) -> bool:
        """Whether it has a name fit for a person: an agent's, not a lookup's."""
        return self.tool.startswith("ask_")


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, verbatim."""
    pieces = [(piece or "").strip() for piece in _SENTENCE.split(text)]
    return [piece for piece in pieces if piece]


def compose(results: Sequence[Result], phrases: Phrases = ENGLISH) -> str:
    """One answer from the results of sub-agents, in order, each fact once; what failed is named at the end."""
    results = [result for result in results if not is_unspoken(result)]
    failures = [own_up(result, phrases) for result in results]
    several = failures.count("") > 1 and all(result.of_agent for result in results if result.tool)
    parts: list[str] = []
    earlier: set[str] = set()
    for result, failure in zip(results, failures, strict=True):
        if failure:
            continue
        text, note = _split_note(result.text)
        body = itemised(_drop_repeats(prose(text), earlier))
        if body:
            parts.append(f"**{heading(result.label)}:** {body}" if several else body)
        if note and note.lower() not in body.lower():
            parts.append(phrases.reserved.format(part=result.label, note=note))
    admissions = " ".join(dict.fromkeys(filter(None, failures)))
    return "\n\n".join(filter(None, [*parts, admissions])) or phrases.nothing


def is_unspoken(result: Result) -> bool:
    """Whether nobody is to hear of a failure."""
    return result.failed and _UNSPOKEN.search(result.text) is not None


def itemised(text: str) -> str:
    """The same words, with a sentence that lists three things or more as a list: an item a line."""
    lines: list[str] = []
    for piece in sentences(text):
        head, colon, listing = piece.partition(": ")
        items = listing.split("; ")
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
    if unfit := _FOR_NOBODY.match(result.text):
        return phrases.for_nobody.format(part=unfit["part"])
    if missing := _NOTHING_ON.match(result.text):
        return phrases.nothing_on.format(part=missing["part"], request=missing["request"])
    if missing := _NO_ANSWER.match(result.text):
        if missing["why"]:
            return phrases.no_answer_because.format(part=missing["part"], why=missing["why"])
        return phrases.no_answer.format(part=missing["part"])
    if not result.failed:
        return ""
    if result.of_agent:
        return phrases.no_answer.format(part=result.label)
    return phrases.failed


def answer(
    request: str,
    results: Sequence[Result],
    acts: Collection[str] = (),
    phrases: Phrases = ENGLISH,
) -> str:
    """A worker's answer: the results closest to the request first, missing data said plainly. Where one of them is of
    `acts`, the tools that do something in the world, they stand in the order of the calls: what is told last is how
    things stand."""
    good: list[Result] = []
    missing: list[str] = []
    for result in results:
        if bare := _told_of_bare(result, acts, phrases):
            good.append(replace(result, text=bare))
        elif not result.failed:
            good.append(result)
        elif not is_unspoken(result):
            missing.append(phrases.unavailable.format(sought=_sought(result)))
    lines: list[str] = []
    notes: list[str] = []
    earlier: set[str] = set()
    places: Iterable[int] = range(len(good))
    if not any(result.tool in acts for result in results):
        places = _best_first(closeness(request, [result.text[:MOST] for result in good]))
    for position in places:
        text, note = _split_note(prose(good[position].text, with_names=True))
        # Repeats go first: the count of what is left out counts nothing twice.
        text = _drop_repeats(_ROW_ID.sub("", text), earlier)
        lines.append(extract(request, text, phrases))
        if note:
            notes.append(f"(Note: {note}.)")
    unique = dict.fromkeys(filter(None, [*lines, *missing, *notes]))
    return "\n\n".join(unique) or "There is nothing to report on that."


def _told_of_bare(result: Result, acts: Collection[str], phrases: Phrases) -> str:
    """What is said of a result that has no words: nothing at all, yes or no; empty where it has some. An act that
    ended so was done."""
    text = result.text.strip()
    if result.failed or text not in WORDLESS:
        return ""
    label = heading(result.label)
    if text == "false":
        return phrases.answered_no.format(tool=label)
    if result.tool in acts:
        return phrases.done.format(act=label)
    if text == "true":
        return phrases.answered_yes.format(tool=label)
    return phrases.returned_nothing.format(sought=_sought(result))


def _sought(result: Result) -> str:
    """What a lookup looks up: its name begins with a verb, and the rest says it."""
    return result.label.partition(" ")[2] or result.label


def extract(request: str, text: str, phrases: Phrases) -> str:
    """The text itself when it is short, else its items closest to the request, and how many more there are."""
    text = text.strip()
    if len(text) <= MOST:
        return text
    items = _ITEM.split(text)
    pieces = fitting(request, items, MOST)
    if any(len(item) > MOST for item in items):
        whole_items = " ".join(pieces) or cut(text[: 2 * MOST], MOST)
        return f"{whole_items} {phrases.cut_off}"
    left_out = len(items) - len(pieces)
    return f"{' '.join(pieces).rstrip(' ;.')}. And {left_out} more."


def fitting(request: str, pieces: Sequence[str], room: int) -> list[str]:
    """The pieces closest to a request that fit into so many characters, in their own order."""
    ranks = closeness(request, pieces)
    if pieces:
        ranks[0] += 0.1  # what a text begins with says what it is about
    positions: list[int] = []
    for position in _best_first(ranks):
        if len(pieces[position]) < room:
            positions.append(position)
            room -= len(pieces[position]) + 1
    return [pieces[position] for position in sorted(positions)]


def closest(aim: str, pieces: Sequence[str], count: int) -> list[str]:
    """The pieces that come closest to an aim, in their own order."""
    positions = _best_first(closeness(aim, pieces))[:count]
    return [pieces[position] for position in sorted(positions)]


def _best_first(ranks: Sequence[float]) -> list[int]:
    return sorted(range(len(ranks)), key=lambda position: -ranks[position])


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, ended at a word."""
    if limit < 2:
        return text[:limit]
    return textwrap.shorten(text, limit, placeholder="…")


def _split_note(text: str) -> tuple[str, str]:
    """A text and the reservation that stands at its end, without its full stop."""
    note = _NOTE.search(text)
    if note is None:
        return text.strip(), ""
    return text[: note.start()].strip(), note["note"].strip().rstrip(".")


def _drop_repeats(text: str, earlier: set[str]) -> str:
    """The text without sentences said before, its line breaks kept."""
    lines: list[str] = []
    for line in text.splitlines():
        fresh: list[str] = []
        for piece in sentences(line):
            key = " ".join(words(piece))
            if key not in earlier:
                fresh.append(piece)
            if key:
                earlier.add(key)
        if fresh or not line.strip():
            lines.append(" ".join(fresh))
    return "\n".join(lines).strip()


def preamble(names: Sequence[str]) -> str:
    """One short sentence that names whom the request goes to. It holds no word of the user's: what was typed may be an
    insult, a fragment, or five thousand letters."""
    unique = list(dict.fromkeys(names))
    if len(unique) == 1:
        enumeration = unique[0]
    else:
        enumeration = f"{', '.join(unique[:-1])} and {unique[-1]}"
    return f"Let me check with {enumeration}."


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
    if _GO_AHEAD.search(request):
        return phrases.held_back
    return phrases.agreed


def from_context(request: str, context: str) -> str:
    """The one or two sentences of a text that answer a request, or a plain statement that there are none."""
    request_words = {word for word in content(request) if word not in STOP}
    pieces: list[str] = []
    for piece in sentences(context[:20_000])[:200]:
        if len(words(piece)) > 3 and request_words & set(words(piece)):
            pieces.append(piece)
    ranks = closeness(request, pieces)
    close = [piece for piece, rank in zip(pieces, ranks, strict=True) if rank >= 0.45]
    found = " ".join(closest(request, close, 2))
    return (
        found or "I'm sorry, I can't help with that, as no tool and no text I was given answers it."
    )
