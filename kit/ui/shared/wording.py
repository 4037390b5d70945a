"""How names and texts read on a page, with nothing in them that acts."""

import re
from collections.abc import Container, Iterable
from datetime import date, datetime

from kit.core.card import AgentCard
from kit.core.display.agent_name import heading, words_of_id
from kit.core.display.count import many
from kit.core.model import OFFLINE
from kit.core.outcome import Usage
from kit.core.trace import Span

LONGEST = 1_200
"""Characters of a text from outside that are repeated on a page."""


STAND_IN_TOKENS = "the stand-in counts four characters as a token"
"""What its figures of tokens are: it has no tokens of its own."""


def is_simulated(model: str) -> bool:
    """Whether the figures of a model are simulated: those of the offline stand-in, and those of a
    simulated model, whose key or name says so."""
    # A stored turn has the key of its model and nothing else of it.
    return model == OFFLINE.key or "stand-in" in model or "simulated" in model


def model_words(key: str) -> str:
    """Returns a model's key as a person reads it."""
    if key == OFFLINE.key:
        return "offline stand-in"
    return key


def speaker_words(model: str) -> str:
    """Returns a sentence of markdown that says who answers."""
    if is_simulated(model):
        return "A rule-based stand-in answers, not a language model; set a key for one."
    return f"The model {literal(model)} answers."


def simulated_words(models: Iterable[str]) -> str:
    """Returns a sentence that names the models whose figures are simulated; empty where none is."""
    names: list[str] = []
    for model in models:
        if is_simulated(model) and model_words(model) not in names:
            names.append(model_words(model))
    if not names:
        return ""
    sentence = f"Figures of {' and '.join(names)} are simulated: no language model made them"
    if model_words(OFFLINE.key) in names:
        sentence += f", and {STAND_IN_TOKENS}"
    return f"{sentence}."


def dollars(cost: float | None) -> str:
    """Returns a cost in US dollars; a dash where no price is known."""
    if cost is None:
        return "–"
    if cost:
        return f"${cost:.4f}"
    return "$0"


def tokens_in_words(usage: Usage) -> str:
    """Returns the tokens of a turn or an agent; unknown where nobody said any."""
    if usage.untold_tokens and not (usage.input_tokens or usage.output_tokens):
        return "not known"
    text = f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"
    if usage.untold_tokens:
        text += f", without {many(usage.untold_tokens, 'agent')} that did not say"
    if usage.estimated:
        text += ", in part estimated"
    return text


def cost_in_words(usage: Usage) -> str:
    """Returns a cost in US dollars, and for how many agents nobody knows it."""
    if usage.cost is None and not usage.model_calls and not usage.untold_costs:
        return "nothing: no model was asked"
    if usage.cost is None:
        return "price not known"
    text = dollars(usage.cost)
    if usage.estimated and usage.cost:
        text += ", in part estimated"
    if usage.untold_costs:
        text += f", without {many(usage.untold_costs, 'agent')} that did not say"
    return text


def span_name(span: Span) -> str:
    """Returns the name of a span in charts, lists and headings."""
    if span.kind == "model":
        purpose = str(span.attributes.get("purpose", span.name))
        return _PURPOSES.get(purpose, purpose)
    if span.kind == "agent":
        return name_of(span.name)
    return span.name


_PURPOSES = {
    "decide": "deciding",
    "work": "model call",
    "compose": "writing the answer",
    "job": "small job",
}
"""What a model call is for -> its name."""


def took(seconds: float) -> str:
    """Returns seconds as a person reads them, short ones in milliseconds."""
    if seconds >= 0.1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.0f} ms"


def moment(at: float) -> str:
    """Returns a time of the wall clock as a person reads it."""
    return datetime.fromtimestamp(at).strftime("%d %b %Y, %H:%M:%S")


def day_of_data(today: str) -> str:
    """Returns which day it is for models and services, in words; nothing where it is today."""
    if today == date.today().isoformat():
        return ""
    try:
        day = date.fromisoformat(today)
    except ValueError:
        return f"data as of {today}"
    return f"data as of {day.day} {day:%b %Y}"


_NAMES: dict[str, str] = {}
"""Agent -> its name for people, of the deck that this process serves. A stored turn has ids alone, and every page
writes names: so they are known once, and not handed to each function that draws a word."""
_A2A = "a2a"
"""The one pattern whose name is no word."""


def use_names(cards: Iterable[AgentCard]) -> None:
    """Has agents called from now on as their cards say."""
    _NAMES.clear()
    for card in cards:
        _NAMES[card.id] = card.label


def name_of(agent: str) -> str:
    """Returns what people read in place of the id of an agent, within a sentence."""
    return _NAMES.get(agent) or words_of_id(agent)


def label(agent: str) -> str:
    """Returns what people read in place of the id of an agent or a pattern, as a heading."""
    if agent == _A2A:
        return agent.upper()
    return heading(name_of(agent))


def agent_labels(agents: Iterable[str], failed: Container[str]) -> list[str]:
    """Returns agents in plain words, those that failed with a cross."""
    labels: list[str] = []
    for agent in agents:
        if agent in failed:
            labels.append(f"{label(agent)} ✗")
        else:
            labels.append(label(agent))
    return labels


_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+([^\s#].*)$", re.MULTILINE)
_MARKS = " \t#"
_NESTED_HEADING = re.compile(r"^([ \t>*+\-\d.)]*)#", re.MULTILINE)
_UNDERLINE = re.compile(r"^([ \t>]*)(?:=+|-+)[ \t]*$", re.MULTILINE)
"""Makes a heading of the line above it."""


_MARK = re.compile(r"(?<!\\)\\*([$\[<`]|~(?=~~)|:(?=[\w+-]))")
"""Opens mathematics, a link, HTML or code, or what Streamlit makes a colour, an icon or an emoji of."""
_CODE = re.compile(
    r"""^([ ]{0,3})```[\w+#.-]*[ ]*\n             # a block: indented alike throughout, for it may stand in a list
        (?: (?: \1(?![ \t]*```).* | [ ]* ) \n )*+    # without another fence inside
        (?: \1`{3,}[ ]*$ | (?:\1(?![ \t]*```).*)?\Z )
      | (?<![`\\])`[^`\n|]+`(?!`)                  # a few words: in one line, and in one cell of a table""",
    re.MULTILINE | re.VERBOSE,
)
_KEPT = re.compile("\ue000(\\d+)\ue001")
"""Stands for a piece of code while the text around it is made ready."""


def prose(text: str) -> str:
    """Returns a model's text as markdown with emphasis, lists, tables and code alone: it may repeat anybody's words.

    `$` is money, a heading a bold line; links, pictures and addresses are text. Code between backticks stays as it is,
    for nothing acts in it; any other backtick is text, so that no page sees code where this function sees none.
    """
    code: list[str] = []

    def keep(match: re.Match[str]) -> str:
        code.append(match[0])
        return f"\ue000{len(code) - 1}\ue001"

    # A carriage return ends a line of markdown too.
    lines = re.sub(r"\r\n?", "\n", re.sub("[\ue000\ue001]", "", text))
    return _KEPT.sub(lambda mark: code[int(mark[1])], _without_effect(_CODE.sub(keep, lines)))


def _without_effect(text: str) -> str:
    # Backslashes in front of a mark would set it free again: one stands there, however many there were.
    plain = _UNDERLINE.sub(r"\1", _MARK.sub(r"\\\1", text))
    return inert(_NESTED_HEADING.sub(r"\1\\#", _HEADING.sub(_bold, plain)))


def _bold(heading: re.Match[str]) -> str:
    return f"**{heading[1].rstrip(_MARKS)}**"


def inert(text: str) -> str:
    """Returns the text with a mark of no width in each address, so that no page makes a link of it."""
    return re.sub(r"(?<=\w)(?=://|@\w)|www(?=\.)", "\\g<0>\u2060", text, flags=re.IGNORECASE)


def literal(text: str, longest: int = LONGEST) -> str:
    """Returns a text from outside as it was written: no markdown in it acts."""
    start = inert(text if len(text) <= longest else text[:longest] + " …")
    # `:` and `/` too: Streamlit makes colours, icons and emoji of words between colons.
    return re.sub(r"([\\`*_{}\[\]()#+\-.!~|>$:<&@/=])", r"\\\1", start).replace("\n", "  \n")


def beginning(text: str, longest: int, elsewhere: str) -> str:
    """Returns a text, of a long one its beginning and how much more there is `elsewhere`."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n… {len(text) - longest:,} more characters in {elsewhere}"
