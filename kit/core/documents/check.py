"""Documents as JSON: checked before anything is written, and read back as values."""

import json
import math
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from kit.core.documents.document import OWNER
from kit.core.errors import StorageSchemaError, StoreError, field_faults
from kit.core.value import Value

D = TypeVar("D", bound=Value)


def check(document: Value, dimension: int | None = None) -> str:
    """Returns a document as JSON, its vector aside.

    Raises StorageSchemaError, which names kind and place, for one whose fields are not of their
    types, whose vector has not that dimension, or which JSON cannot hold.
    """
    kind = type(document).__name__
    fields = document.model_dump(warnings=False)
    try:
        type(document).model_validate(fields, strict=True)
        vector = fields.pop("embedding", None)
        if vector is not None and (len(vector) != dimension or not all(map(math.isfinite, vector))):
            raise ValueError(
                f"embedding has {len(vector)} numbers, the embedder gives {dimension}, all finite"
            )
        if vector is not None and not fields.get("embedder"):
            raise ValueError("embedding without the name of its embedder")
        nobody = [name for name in ("tenant_id", "user_id", "session_id") if fields.get(name) == ""]
        if nobody:
            raise ValueError(f"its {', '.join(nobody)} is empty: an id that is left out is None")
        lacking = [name for name in OWNER.get(fields.get("scope", ""), ()) if not fields[name]]
        if lacking:
            raise ValueError(f"of scope {fields['scope']} it has to name its {', '.join(lacking)}")
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
        text.encode()
        # Lists and dicts in each other by the hundred can be written, and nobody could read them back.
        from_json(text)
    except ValidationError as error:
        faults = "; ".join(field_faults(error.errors(), "document"))
        raise StorageSchemaError(f"{kind} was not written, {faults}") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageSchemaError(f"{kind} was not written: {error}") from error
    return text


def document_of(kind: type[D], text: str) -> D:
    """Returns a document from its JSON. Raises StoreError for one that was damaged, or written by a newer kit."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise StoreError(
            f"a stored {kind.__name__} cannot be read: {error.errors()[0]['msg']}; restore the file, or move it away"
        ) from error
