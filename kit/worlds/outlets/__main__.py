"""`python -m kit.worlds.outlets`: serves the skills of one tenant over standard input and output,
or of all over HTTP."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from kit.core.errors import KitError, SettingsError
from kit.core.extra import require
from kit.settings import Settings
from kit.worlds.outlets.rows import TENANTS

KEYS = "SKILL_SERVICE_KEYS"
"""The environment variable with the keys of the tenants, such as `acme=K1,globex=K2`."""
LOG = "SKILL_SERVICE_LOG"
"""The environment variable with the file that calls are written to."""


def read_keys(text: str) -> Mapping[str, str]:
    """Tenant -> key. Raises SettingsError where there is none, or an entry that is none."""
    entries = [entry.partition("=") for entry in text.split(",") if entry.strip()]
    keys = {tenant.strip(): key.strip() for tenant, _, key in entries}
    if not keys or not all(tenant in TENANTS and len(key) >= 16 for tenant, key in keys.items()):
        raise SettingsError(
            f"set {KEYS}={','.join(f'{name}=KEY' for name in TENANTS)} with keys of 16 characters or more"
        )
    return keys


def main() -> int:
    """Serves until the input ends, or until interrupted. Returns 2 for a setting or address that cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m kit.worlds.outlets", description="Serve the skills of the outlets over MCP."
    )
    parser.add_argument(
        "--tenant", default="acme", choices=TENANTS, help="whose skills are served without --port"
    )
    parser.add_argument(
        "--port", type=int, help="serve over HTTP at this port, to whoever has a key"
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument(
        "--log",
        help=f"write each call that ran into this file (default: {LOG}, else nothing is written)",
    )
    arguments = parser.parse_args()
    variables = Settings.read().variables
    path = arguments.log or variables.get(LOG)
    try:
        require("mcp", "mcp")
        from kit.worlds.outlets.call_log import CallLog
        from kit.worlds.outlets.server import serve_stdio, skill_app
        from kit.worlds.outlets.skill_service import SkillService

        service = SkillService(log=CallLog(Path(path) if path else None))
        if arguments.port is None:
            asyncio.run(serve_stdio(service, arguments.tenant))
        else:
            from kit.worlds.service.serve import serve

            app = skill_app(service, read_keys(variables.get(KEYS, "")))
            print(
                f"serving /api/TENANT/mcp on http://{arguments.host}:{arguments.port}", flush=True
            )
            serve(app, arguments.host, arguments.port)
    except KitError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
