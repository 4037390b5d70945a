"""What an error of OpenSearch means for whoever reads it, and whether the request may be made again."""

from dataclasses import dataclass
from typing import Any

from opensearchpy import ConnectionError as Unreachable
from opensearchpy import ConnectionTimeout, SSLError, TransportError
from urllib3.exceptions import NewConnectionError

from kit.core.errors import StorageSchemaError, StoreBusy, StoreError
from kit.core.schema.json_value import is_object
from kit.stores.opensearch.address import Address

MOST_CAUSES = 10


@dataclass(frozen=True, slots=True)
class Fault:
    """What to raise for an error."""

    error: StoreError
    was_refused: bool = False
    """The server did nothing of what it was asked: a write may be made again as well."""
    passes: bool = False
    """The same may go well in a moment: a request that changes nothing may be made again."""


def fault_of(error: TransportError, address: Address) -> Fault:
    """Returns what an error is, in plain words and with what helps."""
    where = f"OpenSearch at {address.url}"
    if isinstance(error, Unreachable):
        return _unreachable(error, address, where)
    reason = _reason(error)
    # Its type is looked at first: such a block has had more than one status.
    if error.error == "cluster_block_exception":
        return Fault(
            StoreError(
                f"{where} takes no writes to an index: {reason}; make room on its disk, then set "
                "index.blocks.write and index.blocks.read_only_allow_delete of that index to null"
            )
        )
    match error.status_code:
        case 429:
            busy = StoreBusy(f"{where} has too much to do: {reason}; try again, or give it more")
            return Fault(busy, was_refused=True, passes=True)
        case 401:
            return Fault(
                StoreError(f"{where} refuses the user or the password: correct KIT_DOCUMENTS")
            )
        case 403:
            return Fault(
                StoreError(
                    f"{where} does not allow that: {reason}; give the user the role of "
                    "kit/stores/opensearch/roles.yml"
                )
            )
        case 400 | 413:
            return Fault(StorageSchemaError(f"{where} refused a document or a query: {reason}"))
        case 502 | 503 | 504:
            return Fault(red_index(address, reason), passes=True)
        case status:
            return Fault(StoreError(f"{where} answered {status}: {reason}"))


def red_index(address: Address, reason: str) -> StoreError:
    """Returns what to raise where a part of an index is on no node that runs."""
    return StoreError(
        f"OpenSearch at {address.url} has an index that is red, some of which is nowhere: {reason}; "
        "ask it for _cluster/allocation/explain, and start the nodes that are missing"
    )


def _unreachable(error: Unreachable, address: Address, where: str) -> Fault:
    if isinstance(error, ConnectionTimeout):
        return Fault(
            StoreError(
                f"{where} did not answer within {address.timeout:g} s: look at its load, or set "
                "timeout=SECONDS in KIT_DOCUMENTS; whether it has written is not known"
            )
        )
    if isinstance(error, SSLError):
        return Fault(
            StoreError(
                f"{where} has a certificate that is not trusted here: set ca=FILE in KIT_DOCUMENTS"
            )
        )
    absence = StoreError(f"{where} cannot be reached: start it, or correct KIT_DOCUMENTS")
    # Where there was no connection nothing was sent.
    return Fault(absence, was_refused=isinstance(error.info, NewConnectionError), passes=True)


def _reason(error: TransportError) -> str:
    """Returns the innermost reason that the server gives."""
    cause: Any = error.info
    for name in ("error", *["caused_by"] * MOST_CAUSES, "reason"):
        if is_object(cause):
            cause = cause.get(name, cause)
    return str(cause)[:500]
