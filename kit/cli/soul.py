"""`kit soul`: how the assistant speaks to a tenant, or to one of its users."""

import asyncio
import time
from argparse import ArgumentTypeError, Namespace
from typing import Any

from kit.cli.options import open_stored


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    soul = commands.add_parser(
        "soul", help="how the assistant speaks to a tenant, or to one of its users"
    )
    actions = soul.add_subparsers(required=True, metavar="action", dest="action")
    for name, text in (
        ("set", "write it, in the place of what was there"),
        ("show", "print it"),
        ("remove", "delete it"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("tenant")
        action.add_argument("--user", help="of this user (default: of the whole tenant)")
        action.set_defaults(run=_run)
    put = actions.choices["set"]
    for field, text in (
        ("name", "what it is called"),
        ("tone", "such as dry"),
        ("language", "such as es, or de-DE"),
    ):
        put.add_argument(f"--{field}", default="", help=text)
    put.add_argument("--prompt", dest="system_prompt", default="", help="what else it is told")
    put.add_argument(
        "--policy",
        action="append",
        default=[],
        type=_policy,
        metavar="NAME=TEXT",
        help="a rule; repeatable",
    )


def _policy(text: str) -> tuple[str, str]:
    name, _, rule = text.partition("=")
    if not (name and rule):
        raise ArgumentTypeError(f"{text!r} is no policy; write NAME=TEXT")
    return name, rule


def _run(arguments: Namespace) -> int:
    return asyncio.run(_act(arguments))


async def _act(arguments: Namespace) -> int:
    from kit.core.context import Principal
    from kit.core.documents.document import Persona, Soul
    from kit.settings import Settings
    from kit.stores.documents.souls import words_of

    tenant = arguments.tenant
    user = arguments.user
    with open_stored(Settings.read()) as store:
        souls = store.open_documents().souls
        if arguments.action == "remove":
            if await souls.remove(tenant, user):
                return 0
            return 1
        if arguments.action == "set":
            persona = Persona(
                **{field: getattr(arguments, field) for field in Persona.model_fields}
            )
            fields: dict[str, Any] = {
                "tenant_id": tenant,
                "user_id": user,
                "policies": dict(arguments.policy),
            }
            await souls.put(
                Soul(id=f"{tenant}/{user or ''}", persona=persona, updated_at=time.time(), **fields)
            )
        # A user may have a soul beside that of the tenant; the one that was named is shown.
        soul = (await souls.of(Principal(tenant_id=tenant, user_id=user or "")))[user is not None]
    print(words_of(soul) if soul else "no soul")
    if soul:
        return 0
    return 1
