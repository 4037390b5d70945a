"""What reaches the user: words, progress and components, and how an answer came to own up to a failure."""

from typing import Literal

from kit.core.limits import Data
from kit.core.value import Value

Acknowledgement = Literal["composed", "recomposed", "appended", "rescued"]
"""How an answer came to own up to what failed: at once, the second time, by a sentence added, made
of the answers in hand."""


class ResponseId(Value):
    """What an answer is called: its provider's name for it, or `ft_...` for the support agent's, which has none."""

    kind: Literal["response_id"] = "response_id"
    agent: str
    response_id: str


class Text(Value):
    """Text for the user. `lead` is said before it is known whether sub-agents are called: the
    preamble, or the whole answer."""

    kind: Literal["text"] = "text"
    channel: Literal["lead", "answer"]
    text: str
    synthetic: bool = False
    """The card's fixed line, because the model said nothing."""


class TextReplaced(Value):
    """Every text of this channel since `from_seq` no longer stands; `text` stands instead."""

    kind: Literal["text_replaced"] = "text_replaced"
    channel: Literal["lead", "answer"] = "answer"
    from_seq: int
    text: str


class Reasoning(Value):
    """What a model says of its thinking, a stretch at a time; no part of any answer."""

    kind: Literal["reasoning"] = "reasoning"
    agent: str
    text: str


class Status(Value):
    """A sub-agent's progress as an identifier of the vocabulary; the log writes `unknown` in the place of any other."""

    kind: Literal["status"] = "status"
    agent: str
    status: str


class StatusLine(Value):
    """The same progress in the assistant's words."""

    kind: Literal["status_line"] = "status_line"
    agent: str
    """Empty for a line about several agents at once."""
    text: str


class Component(Value):
    kind: Literal["component"] = "component"
    agent: str
    type: str
    payload: Data


class Separator(Value):
    """Here one agent's words end and another's begin: in history each are a message of their own.

    A pattern emits it that shows sub-agents' own words; a composed answer has no parts. Never for the client.
    """

    kind: Literal["separator"] = "separator"
    agent: str
    """Whose words end."""


class Acknowledged(Value):
    """How a composition came to own up to what failed (decisions 8)."""

    kind: Literal["acknowledged"] = "acknowledged"
    path: Acknowledgement
    owed: tuple[str, ...]


SpeechBody = (
    ResponseId
    | Text
    | TextReplaced
    | Reasoning
    | Status
    | StatusLine
    | Component
    | Separator
    | Acknowledged
)
