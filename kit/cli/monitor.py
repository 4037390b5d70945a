"""`kit monitor`: watches how plans do, writes alerts down and sends them on. `kit data events`: what it reads."""

import asyncio
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kit.cli.options import check_tenant, open_existing

if TYPE_CHECKING:
    from kit.core.documents.document import AgentEvent
    from kit.service.monitor import TenantWatch
    from kit.service.webhook import Webhook
    from kit.settings import Settings


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    monitor = commands.add_parser(
        "monitor", help="watch how plans do; alerts go into the log, and to KIT_ALERT_WEBHOOK"
    )
    monitor.add_argument(
        "--once",
        action="store_true",
        help="look once, write nothing, and exit with 1 where an alert fires",
    )
    monitor.add_argument("--json", action="store_true", help="a line for each tenant and look")
    monitor.add_argument("--tenant", help="of one tenant (default: all)")
    monitor.set_defaults(run=_monitor)


def add_to_data(commands: Any) -> None:
    """Adds the command of the group `data`."""
    events = commands.add_parser(
        "events",
        help="what plans and their tools did: traces of sessions, the audit of skill calls",
    )
    events.add_argument("--tenant", required=True)
    for name in ("user", "session", "plan", "task", "skill"):
        events.add_argument(f"--{name}", metavar="ID", help=f"of one {name}")
    events.add_argument("--type", help="of one type, such as skill.called")
    events.add_argument(
        "--large", action="store_true", help="skill calls whose response went into a file"
    )
    events.add_argument("--days", type=float, help="of the last days (default: ever)")
    events.add_argument("--newest", action="store_true", help="the newest first")
    events.add_argument("--limit", type=int, default=1000, help="at most so many (default: 1000)")
    events.add_argument("--json", action="store_true", help="each event whole, one a line")
    events.set_defaults(run=_events)


def _monitor(arguments: Namespace) -> int:
    return asyncio.run(_watch(arguments))


async def _watch(arguments: Namespace) -> int:
    from kit.service.monitor import Monitor
    from kit.settings import Settings

    settings = Settings.read()
    webhook = _webhook(settings)
    with open_existing(settings) as store:
        check_tenant(store, arguments.tenant)
        notify = webhook.send if webhook is not None else None
        monitor = Monitor(store.open_documents(), arguments.tenant, notify)

        def show(watches: Sequence["TenantWatch"]) -> None:
            for watch in watches:
                print(watch.model_dump_json() if arguments.json else _report(watch), flush=True)
            if not watches and not arguments.json:
                print("No plan ended in the last hour, and nothing was called.", flush=True)

        if arguments.once:
            watches, _ = await monitor.only_look()
            show(watches)
            return int(any(watch.alerts for watch in watches))
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(monitor.run(show))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, running.cancel)
        print("watching", file=sys.stderr, flush=True)
        await asyncio.wait((running,))
        if not running.cancelled():
            running.result()
    return 0


def _events(arguments: Namespace) -> int:
    from kit.settings import Settings
    from kit.stores.documents.protocol import EventFilter

    by = EventFilter(
        tenant_id=arguments.tenant,
        user_id=arguments.user,
        session_id=arguments.session,
        plan_id=arguments.plan,
        task_id=arguments.task,
        event_type=arguments.type,
        skill_id=arguments.skill,
        large_response_triggered=True if arguments.large else None,
        since=time.time() - 86_400 * arguments.days if arguments.days is not None else 0.0,
    )
    settings = Settings.read()
    with open_existing(settings) as store:
        check_tenant(store, arguments.tenant)
        query = store.open_documents().events.query
        events = asyncio.run(query(by, arguments.limit, newest_first=arguments.newest))
    for event in events:
        print(event.model_dump_json() if arguments.json else _line(event))
    return 0


def _line(event: "AgentEvent") -> str:
    """Returns an event as a line: when, what, of what, and the fields that it has."""
    words = [f"{_moment(event.ts)}  {event.event_type:24}"]
    names = ("session_id", "task_id", "agent", "skill_id", "status", "duration_ms")
    for name in (*names, "response_size_bytes", "lock_wait_ms"):
        value = getattr(event, name)
        if value is not None:
            words.append(f"{name}={value}")
    return " ".join(words)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def _webhook(settings: "Settings") -> "Webhook | None":
    from pydantic import SecretStr

    from kit.core.errors import SettingsError
    from kit.service.webhook import Webhook

    if settings.alert_webhook is None:
        return None
    if settings.alert_key is None:
        raise SettingsError(
            "alerts are sent signed: set KIT_ALERT_KEY to a secret that their receiver has too"
        )
    return Webhook(SecretStr(settings.alert_webhook), SecretStr(settings.alert_key))


def _report(watch: "TenantWatch") -> str:
    from kit.metrics.plan_alerts import quiet_words

    headline = quiet_words(watch.health.success.n)
    if watch.alerts:
        headline = "ALERT"
    lines = [f"{watch.tenant_id}: {headline}"]
    for alert in watch.alerts:
        since = f" since {_moment(alert.since)}" if alert.since is not None else ""
        lines.append(f"  {alert.firing.name}{since}: {alert.firing.sentence}")
    for name, value, count in watch.health.rows():
        words = f"{value} of {count}" if count else value
        lines.append(f"  {name:48} {words}")
    return "\n".join(lines)
