"""How plans do, on the page Metrics: the alerts that fire, seven figures and a line over time."""

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from kit.metrics.plan_alerts import quiet_words
from kit.metrics.plan_health import (
    PlanHealth,
    SuccessPoint,
    count_health,
    plan_health,
    success_over_time,
)
from kit.service.monitor import ActiveAlert, Monitor
from kit.stores.documents.protocol import Documents
from kit.ui.metrics.charts import draw_success
from kit.ui.shared.template import health_html

MONTH = 30 * 86_400.0
POINTS = {3_600.0: 12, 86_400.0: 24, 604_800.0: 28, MONTH: 30}
"""Seconds of a window -> the points of its line."""


class PlanWatch(NamedTuple):
    """What is shown of a tenant's plans."""

    health: PlanHealth
    """Of the chosen window."""
    points: Sequence[SuccessPoint]
    alerts: Sequence[ActiveAlert]
    """Those that fire now, whatever the window."""
    quiet: str
    """What is said where none fires."""


async def watch_plans(
    documents: Documents, tenant_id: str, back: float | None, now: float
) -> PlanWatch:
    """Reads how the plans of a tenant did in the last `back` seconds, or ever. Raises StoreError."""
    since = 0.0 if back is None else now - back
    # Nobody knows when the first plan ended; a line over years says little besides.
    span = back or MONTH
    alerts: list[ActiveAlert] = []
    plans = 0
    watches, _ = await Monitor(documents, tenant_id, clock=lambda: now).only_look()
    for watch in watches:
        alerts.extend(watch.alerts)
        plans += watch.health.success.n
    return PlanWatch(
        plan_health(await count_health(documents, tenant_id, since)),
        await success_over_time(documents, tenant_id, now - span, now, POINTS[span]),
        alerts,
        quiet_words(plans),
    )


def draw_plans(watch: PlanWatch) -> None:
    """Draws figures and line; nothing where no plan ended."""
    if not watch.health.success.n:
        return
    st.markdown("### Plans")
    words_column, chart_column = st.columns([6, 5], gap="large")
    words_column.html(health_html(watch.health))
    with chart_column:
        if any(point.success.n for point in watch.points):
            draw_success(watch.points)
