"""Values as rows of the store's tables, and back.

What SQL or JSON cannot hold is worded, so that nothing odd costs a turn its trace.
"""

import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

import orjson
from isal import isal_zlib
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, from_json

from kit.core.context import Operator, Principal, Reader, Session, SessionKey
from kit.core.display.turn_parts import ending_of
from kit.core.errors import describe_error
from kit.core.event import Event
from kit.core.record import Measures, Note, TurnRecord
from kit.core.value import Value
from kit.stores.turn_filter import FailureAxis

log = logging.getLogger("kit.store")
T = TypeVar("T")
V = TypeVar("V", bound=Value)
_JSON_COLUMNS = frozenset({"invoked", "failed", "measures", "tools"})
_UNMEASURED: Measures = TurnRecord.model_fields["measures"].default
_UNMEASURED_JSON = _UNMEASURED.model_dump_json()
_log = TypeAdapter(list[Event])
names_of = TypeAdapter(tuple[str, ...]).validate_json
statuses_of = TypeAdapter(dict[str, str]).validate_json
"""Returns the names of a JSON list. Raises ValueError for another text."""
_fields = attrgetter("values_by_field")
# orjson would spell these two otherwise than pydantic does.
_AS_PYDANTIC = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def row_of(turn: TurnRecord, owner: str) -> dict[str, Any]:
    """Returns the row of a turn, by the names of its columns."""
    row = {**vars(turn), "owner": owner}
    row["ending"] = ending_of(turn.status, turn.measures.parts)
    row["axes"] = " ".join(failure_axes(turn.measures, turn.cap_behavior))
    # A turn that begins has called nobody and measured nothing: that needs no encoder.
    row["invoked"] = _json_of(turn.invoked) if turn.invoked else "[]"
    row["failed"] = _json_of(turn.failed) if turn.failed else "[]"
    row["measures"] = _UNMEASURED_JSON if turn.measures is _UNMEASURED else _json_of(turn.measures)
    return row


def failure_axes(measures: Measures, cap_behavior: str) -> list[FailureAxis]:
    """Returns where something went wrong in a turn, each once."""
    axes: list[FailureAxis] = []
    runs = 0
    whole = 0
    for agent in measures.agents:
        if agent.is_stopped:
            continue
        axis = "data" if agent.data_faults else agent.axis
        if axis is not None and axis not in axes:
            axes.append(axis)
        if not agent.alone:
            runs += 1
            whole += agent.ok and not agent.partial
    if 0 < whole < runs:
        axes.append("partial")
    if cap_behavior == "over":
        axes.append("cap")
    return axes


def value_of(kind: type[V], row: Sequence[Any]) -> V:
    """Returns the value whose fields a row has, in their order. Raises ValueError or TypeError for another row."""
    fields: dict[str, Any] = {}
    for name, value in zip(kind.model_fields, row, strict=True):
        # It reads the NaN that `_dump_leniently` may have written, which orjson refuses.
        fields[name] = from_json(value) if name in _JSON_COLUMNS else value
    return kind(**fields)


def records_of(rows: Iterable[Sequence[Any]]) -> Iterator[TurnRecord]:
    """Reads the turns of their rows one by one; a row that cannot be read is left out."""
    for row in rows:
        record = readable(partial(value_of, TurnRecord), row, row[0])
        if record is not None:
            yield record


def session_of(row: Sequence[Any]) -> Session:
    """Returns the session of a row of `sessions`."""
    tenant_id, session_id, user_id, locale, location = row
    principal = Principal(tenant_id=tenant_id, user_id=user_id)
    return Session(id=session_id, principal=principal, locale=locale, location=location)


def without_surrogates(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row without the halves of surrogate pairs, which no database takes."""
    values: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, str):
            values[name] = value.encode("utf-8", "replace").decode()
        else:
            values[name] = value
    return values


def without_zeros(row: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Returns a row whose texts have no character zero, which PostgreSQL does not take."""
    if not any(isinstance(value, str) and "\0" in value for value in row.values()):
        return row
    values: dict[Any, Any] = {}
    for name, value in row.items():
        if isinstance(value, str):
            values[name] = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        else:
            values[name] = value
    return values


def log_of(events: Sequence[Event]) -> bytes:
    """Returns a turn's events as a JSON list in UTF-8, odd payloads or not."""
    # orjson takes a sixth of pydantic's time. What it refuses, or would word in another way,
    # pydantic words.
    try:
        return orjson.dumps(events, default=_fields, option=_AS_PYDANTIC)
    except orjson.JSONEncodeError:
        pass
    try:
        return _log.dump_json(list(events), fallback=str)
    except PydanticSerializationError:  # half of a surrogate pair, or raw bytes
        return _dump_leniently(_log.dump_python(list(events))).encode()


def packed(log: bytes) -> tuple[bytes, int]:
    """Returns the columns `log` and `size` of a log: a quarter of its bytes, or all where it would not shrink."""
    # The levels above make a log a fifth smaller, and take 2 % more of a turn's CPU. The standard library's zlib takes
    # thirteen times as long as this for the same format.
    data = isal_zlib.compress(log, 0)  # pyright: ignore[reportUnknownMemberType]  # its stub lacks types
    if len(data) < len(log):
        return data, len(log)
    return log, 0


def unpacked(log: bytes | str, size: int) -> str:
    """Returns a log as it was before it was packed."""
    if isinstance(log, str):
        return log
    try:
        return zlib.decompress(log).decode() if size else log.decode()
    except (zlib.error, UnicodeDecodeError):
        # Somebody else wrote it. An error here would break the query for the other rows.
        return log.decode(errors="replace")


def events_of(log: str) -> list[Event]:
    """Returns the events of such a list."""
    return _log.validate_json(log)


def _json_of(value: Measures | Sequence[str]) -> str:
    try:
        return orjson.dumps(value, default=_fields, option=_AS_PYDANTIC).decode()
    except orjson.JSONEncodeError:
        return _dump_leniently(value.model_dump() if isinstance(value, Measures) else value)


def _dump_leniently(value: Any) -> str:
    text = json.dumps(value, default=str, skipkeys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()


def notes_of(text: str) -> dict[str, Note]:
    """Returns the notes of a session by their names. Raises ValueError or TypeError for another text."""
    notes: dict[str, Note] = {}
    for name, row in json.loads(text).items():
        notes[name] = value_of(Note, row)
    return notes


def reader_values(reader: Reader) -> dict[str, str | None]:
    """Returns the values that hold a query to what its reader may see."""
    if isinstance(reader, Operator):
        return {"tenant": None, "user": None}
    return {"tenant": reader.tenant_id, "user": reader.user_id}


def readable(
    read: Callable[[Any], T], row: Any, row_id: str | SessionKey, kind: str = "turn"
) -> T | None:
    """Returns what a row holds; None, and a line in the log, where it cannot be read."""
    # Somebody else may have written the row: no list breaks because of it.
    try:
        return read(row)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        log.error("%s %s in the store cannot be read: %s", kind, row_id, describe_error(error))
        return None
