"""The stored result as a page: every cell is read from it, none is written by hand."""

from collections.abc import Sequence
from html import escape

from kit.conformance.scenario import COMPOSERS, SCENARIOS, Composer
from kit.conformance.table import Mark, Table

SIGNS: dict[Mark, str] = {"pass": "✓", "fail": "✗", "void": "○", "not offered": "–"}
CONFIGURATIONS: dict[bool, str] = {False: "defaults", True: "best"}


def differences(first: Table, second: Table) -> list[str]:
    """The cells that differ between two runs, a line each; of systems that both have."""
    lines: list[str] = []
    before = {system["name"]: first.marks(system) for system in first.systems}
    for system in second.systems:
        marks = before.get(system["name"], {})
        for key, mark in second.marks(system).items():
            if key in marks and marks[key] != mark:
                scenario, composer, best = key
                name = f"{system['name']}, {CONFIGURATIONS[best]}, {composer}, {scenario}"
                lines.append(f"{name}: {marks[key]}, then {mark}")
    return lines


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────


def page(table: Table) -> str:
    """What `make conformance` writes below the mark in docs/conformance.md."""
    parts = [f"Played on {table.content['date']}.", "## What passed", _scores(table)]
    for composer, manner in COMPOSERS.items():
        parts.append(f"## With the {composer} composer")
        parts.append(
            f"Its model {manner}. In each cell the documented defaults stand before the best "
            "configuration: ✓ pass, ✗ fail, – not offered, ○ void."
        )
        parts.append(_grid(table, composer))
    parts += ["## Why a cell is no pass", _reasons(table)]
    parts += ["## The systems", _systems(table)]
    return "\n\n".join(parts)


def _scores(table: Table) -> str:
    rows: list[list[str]] = []
    for system in table.systems:
        row = [system["name"]]
        for best in CONFIGURATIONS:
            count, number = table.score(system, best)
            row.append(f"{count} of {number}" if number else "")
        best_marks = [mark for key, mark in table.marks(system).items() if key[2]]
        row.append(str(best_marks.count("not offered")))
        rows.append(row)
    heads = ["system", "defaults", "best configuration", "of these not offered"]
    note = (
        "A play of what a framework does not offer counts among all and never as passed. The last "
        "column says how many of the plays of its best configuration these are."
    )
    return f"{markdown_table(heads, rows)}\n\n{note}"


def _grid(table: Table, composer: Composer) -> str:
    rows: list[list[str]] = []
    marks = [table.marks(system) for system in table.systems]
    for scenario in SCENARIOS:
        row = [f"{scenario.sentence} `{scenario.id}`"]
        for system in marks:
            signs: list[str] = []
            for best in CONFIGURATIONS:
                mark = system.get((scenario.id, composer, best))
                if mark:
                    signs.append(SIGNS[mark])
            row.append(" ".join(signs))
        rows.append(row)
    return markdown_table(["", *[system["name"] for system in table.systems]], rows)


def _reasons(table: Table) -> str:
    """One folded list a system: the word of the judge on each play that did not pass."""
    parts: list[str] = []
    for system in table.systems:
        rows: list[list[str]] = []
        for cell in system["cells"]:
            if cell["verdict"] == "pass":
                continue
            word = escape(cell["word"], quote=False).replace("|", "\\|").replace("\n", " ")
            why = system["not_offered"].get(cell["scenario"])
            if why:
                word = f"not offered: {why}. What the user met: {word}"
            configuration = CONFIGURATIONS[cell["best"]]
            rows.append([f"`{cell['scenario']}`", cell["composer"], configuration, word])
        if not rows:
            parts.append(f"**{system['name']}**: every cell is a pass.")
            continue
        columns = markdown_table(["scenario", "composer", "configuration", "why"], rows)
        title = f"<summary>{system['name']}: {len(rows)} plays</summary>"
        parts.append(f"<details>{title}\n\n{columns}\n\n</details>")
    return "\n\n".join(parts)


def _systems(table: Table) -> str:
    rows: list[list[str]] = []
    for system in table.systems:
        packages = ", ".join(f"{name} {number}" for name, number in system["packages"].items())
        sources = f"[defaults]({system['defaults_source']}), [best]({system['best_source']})"
        rows.append([system["name"], packages, system["configuration"], sources])
    return markdown_table(["system", "versions", "the best configuration sets", "sources"], rows)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for row in rows:
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)
