"""Cases: what is asked, of whom it should be asked, and what is true of the answer; read from JSON
lines, one case a line.

A line is `{"id", "kind", "domain", "turns": [{"user", "expected_sub_agents", ...}]}`, the format of
public routing sets; a case of one turn may put `user` and `expected_sub_agents` on the line itself.
What a line holds beyond the fields below is left alone, unless its name is nearly that of one of them.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, not_
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pydantic import ConfigDict, Field, ValidationError, field_serializer

from kit.bench.json_lines import first_fault, read_objects
from kit.core.context import Principal
from kit.core.errors import DataError, PictureError, nearest, slip_in
from kit.core.fault import Kind as FaultKind
from kit.core.picture import Picture, mark_pictures
from kit.core.record import Message
from kit.core.schema.json_value import is_list
from kit.core.value import Value

Kind = Literal[
    "single", "mixed", "switch", "oos", "small_talk", "partial", "injection", "reference", "long"
]
"""`oos`: outside of what the deck answers; `partial`: some parts fail; `reference`: leans on what was named earlier."""
KINDS: tuple[Kind, ...] = get_args(Kind)
ANYBODY = "*"
FAILING: frozenset[FaultKind] = frozenset(
    (
        "raise",
        "hang",
        "instantiation",
        "refuses",
        "error_envelope",
        "foreign_principal",
        "bad_payload",
        "version_break",
    )
)
"""Faults that leave an agent without an answer: the reply owes words about it."""


def plain(text: str) -> str:
    """A text without letter case, commas within numbers and curled apostrophes, so that spellings meet."""
    # 4,975 and 4975 are one figure, and keyboards differ in their apostrophes.
    return re.sub(r"(?<=\d),(?=\d{3})", "", text.replace("’", "'")).casefold()


class Fact(Value):
    """Something true that an answer must say."""

    agent: str
    name: str
    any_of: tuple[str, ...]
    """Spellings, one of which is enough; commas within numbers and letter case do not matter."""

    def stated_in(self, text: str) -> bool:
        """Whether a text says it: one of the spellings, as whole words and numbers, in singular or plural."""
        text = plain(text)
        for spelling in map(re.escape, map(plain, self.any_of)):
            if re.search(rf"(?<![\w.]){spelling}(?:e?s)?(?!\w|\.\d)", text):
                return True
        return False


class Ask(Value):
    """One user turn and what is known of it."""

    model_config = ConfigDict(extra="ignore", validate_by_name=True)
    expected: tuple[str, ...] = Field(
        validation_alias="expected_sub_agents", serialization_alias="expected_sub_agents"
    )
    """Whom it is for; empty: nobody is to be called."""
    user: str
    optional: tuple[str, ...] = Field(
        default=(),
        validation_alias="optional_sub_agents",
        serialization_alias="optional_sub_agents",
    )
    """Whom calling is not wrong."""
    assistant: str | None = None
    """What was answered, as history for the turns after; None: nothing is known."""
    skip: bool = False
    """Part of the conversation, but not scored."""
    queries: Mapping[str, str] = {}
    """Agent -> its part of the message, where the case knows it."""
    facts: tuple[Fact, ...] = ()
    carried: tuple[str, ...] = ()
    """Names of earlier turns that prior_context must carry."""
    answers: Mapping[str, str] = {}
    """Agent, or `*` for anybody -> what it answers, in place of its own work."""
    pictures: tuple[Picture, ...] = Field(default=(), exclude_if=not_)
    """What is sent with the words; on a line of a file the names of picture files beside it."""
    expected_text: str | None = Field(default=None, exclude_if=not_)
    """What the answer must say; None: nothing is known."""
    unlabelled: bool = Field(default=False, exclude_if=not_)
    """Whom it is for is not known, so that no scorer of routing decides anything of it."""

    @field_serializer("pictures")
    def _refs(self, pictures: tuple[Picture, ...]) -> list[dict[str, Any]]:
        return [picture.ref.model_dump() for picture in pictures]

    @property
    def message(self) -> str:
        """What is typed, with a mark for each picture."""
        return mark_pictures(self.user, self.pictures)

    def messages(self, turn_id: str) -> list[Message]:
        """The turn as history: the message, and the reply where it is known."""
        messages = [Message(turn_id=turn_id, role="user", text=self.message)]
        if self.assistant:
            messages.append(Message(turn_id=turn_id, role="assistant", text=self.assistant))
        return messages


class Case(Value):
    """One dialogue, one turn or several; the last turn is the newest."""

    model_config = ConfigDict(extra="ignore")
    id: str
    kind: Kind
    domain: str
    """The vertical it is for, or `mixed`, `small_talk`, `out_of_scope`; of foreign sets whatever they call it."""
    turns: tuple[Ask, ...]
    principal: Principal = Principal(tenant_id="acme", user_id="u-001")
    """On whose behalf it is asked."""
    faults: tuple[str, ...] = ()
    """What goes wrong in the scored turns, as `rewards=timeout` (kit/core/fault.py)."""
    topics: Mapping[str, tuple[str, ...]] = {}
    """Agent -> words by which a person would name its part."""
    forbids: tuple[str, ...] = ()
    """What no reply may hold."""
    kept: Mapping[str, tuple[str, ...]] = {}
    """Sort (entities, decisions, intents) -> what a summary must hold."""
    live: bool = False
    """The turns are played one after the other in one session of the store, instead of being told as history."""
    source: str = "ours"
    cluster: str = Field(default="", exclude_if=not_)
    """Cases of one cluster are about one thing, such as paraphrases of one question; empty: it is alone."""

    @property
    def scored(self) -> tuple[int, ...]:
        """Places of the turns that count."""
        return tuple(number for number, ask in enumerate(self.turns) if not ask.skip)

    @property
    def agents(self) -> frozenset[str]:
        """Everybody a turn names."""
        names: set[str] = set()
        for ask in self.turns:
            names.update(ask.expected, ask.optional, ask.queries, ask.answers)
            names.update(map(attrgetter("agent"), ask.facts))
        return frozenset(names - {ANYBODY})


_NAMES = frozenset(
    (*Case.model_fields, *Ask.model_fields, "expected_sub_agents", "optional_sub_agents")
)
_NAMES_OF_OTHERS = frozenset(("answer", "sources", "topic", "turn"))
"""What public sets call something of their own, although it is nearly a name of ours."""
_LIKE_A_FIELD = 0.85
"""How alike a name has to be to one of ours to be taken for a slip of the pen; `cluster_id` is not."""


def read_cases(
    path: Path, agents: Collection[str] | None = None, *, with_labels: bool = True
) -> Iterator[Case]:
    """Cases of a JSONL file, in order, each as soon as its line is read: what was done with earlier
    ones stays done.

    `agents` are the sub-agents there are; None takes any. Without `with_labels` only messages and
    replies are read, and whom a message is for where the line says so. Raises DataError, one
    sentence with file and line, for a file that cannot be read and for a line that is no JSON,
    lacks a field, has a slip in the name of one, names an unknown agent or repeats an id.
    """
    cases = (
        (where, make_case(fields, where, path.parent, with_labels=with_labels))
        for where, fields in read_objects(path, "case")
    )
    yield from check_cases(cases, agents)


def check_cases(
    cases: Iterable[tuple[str, Case]], agents: Collection[str] | None = None
) -> Iterator[Case]:
    """The cases, each as soon as it is known to be alone with its id and to name only `agents`.

    Each comes with its place, which the DataError names.
    """
    first: dict[str, str] = {}
    for where, case in cases:
        # Two cases of one id would be one cell of a grid.
        if case.id in first:
            raise DataError(
                f"{where}: id {case.id!r} is that of {first[case.id]} already; choose another"
            )
        name, _, line = where.rpartition(":")
        first[case.id] = f"line {line}" if name else where
        if agents is not None and not case.agents.issubset(agents):
            unknown = min(case.agents.difference(agents))
            raise DataError(f"{where}: unknown agent {unknown!r}: {nearest(unknown, agents)}")
        yield case


def as_line(case: Case) -> str:
    """A case as one line of a file, without what has its default; `read_cases` reads it back equal,
    unless it has pictures."""
    fields = case.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return json.dumps(fields, ensure_ascii=False) + "\n"


def make_case(
    fields: Mapping[str, Any], where: str, folder: Path = Path(), *, with_labels: bool = True
) -> Case:
    """The case that these fields describe, as on a line of a file in `folder`. Raises DataError,
    which names the place."""
    # 0 is an id.
    if fields.get("id") in (None, ""):
        raise DataError(f'{where}: a case without an id; give it one, such as "id": "coffee-1"')
    name = f"{where}: case {fields['id']!r}"
    turns = fields.get("turns")
    if not turns and "user" in fields:
        turns = [fields]
    if not isinstance(turns, list):
        raise DataError(
            f'{name} has no turns; it needs "turns", or "user" and "expected_sub_agents"'
        )
    try:
        if with_labels:
            for part in (fields, *cast("list[dict[str, Any]]", turns)):
                names = [name for name in part if name not in _NAMES_OF_OTHERS]
                slip = slip_in(names, _NAMES, _LIKE_A_FIELD)
                if slip is not None:
                    raise DataError(f"{name}: unknown field {slip[0]!r}: did you mean {slip[1]!r}?")
        asks = [_ask(turn, folder, with_labels) for turn in cast("list[dict[str, Any]]", turns)]
        labels: Mapping[str, Any] = fields if with_labels else {}
        kind = labels.get("kind") or kind_of(asks)
        return Case.model_validate(
            {"domain": "", **labels, "id": str(fields["id"]), "kind": kind, "turns": asks}
        )
    except ValidationError as error:
        raise DataError(f"{name}, {first_fault(error)}") from error
    except (OSError, PictureError) as error:
        raise DataError(f"{name}, pictures: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        reason = "a turn is no object"
        if isinstance(error, KeyError):
            reason = f"{error} is missing"
        needs = '"user" and "expected_sub_agents"' if with_labels else '"user"'
        raise DataError(f"{name} cannot be used: {reason}; each turn needs {needs}") from error


def _ask(turn: Mapping[str, Any], folder: Path, with_labels: bool) -> Ask:
    # A file that is only routed need not say whom its messages are for. Where it does, a name that
    # nobody has is a mistake all the same.
    if not with_labels:
        return Ask(
            user=str(turn["user"]),
            expected=_names_in(turn.get("expected_sub_agents")),
            assistant=turn.get("assistant"),
            skip=True,
        )
    # What is null on a line has its default.
    fields = {name: value for name, value in turn.items() if value is not None}
    fields["user"] = turn["user"]
    if not turn.get("skip"):
        fields["expected_sub_agents"] = turn["expected_sub_agents"]
    fields.setdefault("expected_sub_agents", ())
    if "pictures" in fields:
        fields["pictures"] = [_picture(folder / name) for name in fields["pictures"]]
    return Ask.model_validate(fields)


def _names_in(label: object) -> tuple[str, ...]:
    """Returns the agents that a label names; none where it is of another form, which routing does not read."""
    if not is_list(label):
        return ()
    return tuple(name for name in label if isinstance(name, str))


def _picture(path: Path) -> Picture:
    return Picture.of(path.read_bytes(), path.name)


def kind_of(asks: Sequence[Ask]) -> Kind:
    """The kind of a case that does not say it."""
    if len(asks) > 1:
        return "switch"
    expected = len(asks[0].expected)
    if not expected:
        return "oos"
    if expected == 1:
        return "single"
    return "mixed"
