"""Fills two pages of the site from the code: the commands, and the fields of a card."""

import argparse
import os
from collections.abc import Iterator
from typing import Any

# argparse wraps its help to the terminal that happens to build the site.
os.environ["COLUMNS"] = "100"

from kit.cli import command_parser
from kit.core.card import AgentCard


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page before the page is rendered."""
    if page.file.src_uri == "reference/commands.md":
        return markdown.replace("<!-- commands -->", "\n".join(command_sections()))
    if page.file.src_uri == "reference/cards.md":
        return markdown.replace("<!-- card -->", "\n".join(card_rows()))
    return markdown


def command_sections() -> Iterator[str]:
    """Yields a heading and the help of each command."""
    yield from sections_of(command_parser(), "subagent-kit")


def sections_of(parser: argparse.ArgumentParser, prog: str) -> Iterator[str]:
    """Yields the commands that the help of a parser lists, those of a group after the group."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        for listed in action._choices_actions:
            command = action.choices[listed.dest]
            command.prog = f"{prog} {listed.dest}"
            yield f"\n## {command.prog}\n\n```\n{command.format_help()}```\n"
            yield from sections_of(command, command.prog)


def card_rows() -> Iterator[str]:
    """Yields a table of the fields of a card: name, default, meaning."""
    yield "| field | default | meaning |"
    yield "|---|---|---|"
    for name, field in AgentCard.model_fields.items():
        if field.is_required():
            default = "required"
        else:
            default = f"`{field.get_default(call_default_factory=True)!r}`"
        meaning = " ".join((field.description or "").split()).replace("|", "\\|")
        yield f"| `{name}` | {default} | {meaning} |"
