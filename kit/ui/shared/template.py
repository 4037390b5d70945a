"""What Streamlit has no element for, as HTML from kit/ui/templates: a page gives values, a template draws them.

A template escapes every value that it is given, so nothing that a model, a tool or a person wrote
can act on a page.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kit.core.display.count import many
from kit.metrics.plan_health import PlanHealth
from kit.ui.shared.tag import Tag
from kit.ui.shared.wording import beginning, label, span_name, took


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
    autoescape=True,
    # A misspelt name is an error and not an empty place on a page.
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_FILTERS: dict[str, Any] = _TEMPLATES.filters
_FILTERS["base64"] = _base64
_FILTERS["beginning"] = beginning
_FILTERS["json"] = partial(json.dumps, indent=1, ensure_ascii=False)
_FILTERS["label"] = label
_FILTERS["many"] = many
_FILTERS["span_name"] = span_name
_FILTERS["took"] = took


def render(name: str, **values: object) -> str:
    """Returns the HTML of a template of kit/ui/templates, by its name without the ending."""
    return _TEMPLATES.get_template(f"{name}.html").render(values).strip()


def table_html(
    label: str,
    rows: Iterable[Sequence[str | Tag]],
    head: Sequence[str] = (),
    *,
    kind: str = "rows",
    stacks: bool = False,
) -> str:
    """Returns a table in a box that scrolls in a narrow window and is within reach of the keyboard.

    The first cell of a row is its name. `label` says to a screen reader what the table holds;
    `head` are names of columns; where a style `stacks` the cells of a row, each has that of its column beside it.
    """
    return render("table", label=label, rows=rows, head=head, kind=kind, stacks=stacks)


def health_html(health: PlanHealth) -> str:
    """Returns the seven figures of plans as a table, each share with its interval."""
    # Two columns: a third would lie beyond the edge of a phone.
    rows = [
        (name, f"{value} of {count}" if count else value) for name, value, count in health.rows()
    ]
    head = ("Figure", "Value, with its interval")
    return table_html("Health of plans", rows, head, kind="metrics rows")
