"""The seven figures of plans as the pages Plans and Metrics show them."""

from kit.metrics.plan_health import PlanHealth
from kit.ui.shared.template import table_html


def health_html(health: PlanHealth) -> str:
    """Returns the figures as a table, each share with its interval."""
    # Two columns: a third would lie beyond the edge of a phone.
    rows = [
        (name, f"{value} of {count}" if count else value) for name, value, count in health.rows()
    ]
    head = ("Figure", "Value, with its interval")
    return table_html("Health of plans", rows, head, kind="metrics rows")
