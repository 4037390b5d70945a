"""Runs notebooks and writes them as pages, figures and all: `python notebooks/make_report.py [NAME
...]`, into .kit/report."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from kit.home import HOME

FOLDER = HOME / ".kit" / "report"
NOTEBOOKS = sorted((HOME / "notebooks").glob("*.ipynb"))
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", re.MULTILINE)


def readme_answers() -> dict[str, tuple[str, str]]:
    """Notebook -> its question and its answer, as README's table has them."""
    return {
        name: (question, answer)
        for name, question, answer in _ROW.findall((HOME / "README.md").read_text())
    }


def read(path: Path) -> Any:
    """A notebook as it is committed, without outputs."""
    untyped: Any = nbformat
    return untyped.read(path, as_version=4)


def run(notebook: Any) -> Any:
    """The notebook with its outputs, run in a kernel of its own. Raises CellExecutionError for a cell that fails."""
    NotebookClient(notebook, resources={"metadata": {"path": str(HOME / "notebooks")}}).execute()
    return notebook


def answer(notebook: Any) -> str:
    """The last line a run prints: its answer."""
    texts = [
        output["text"] for output in notebook.cells[-1]["outputs"] if output.get("name") == "stdout"
    ]
    return "".join(texts).strip().splitlines()[-1]


def write_page(name: str, notebook: Any) -> Path:
    """Writes a run as one HTML file; what its text links to is found from the checkout's folder of reports."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("](../", "](../../")
    FOLDER.mkdir(parents=True, exist_ok=True)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    (FOLDER / f"{name}.html").write_text(page, encoding="utf-8")
    return FOLDER / f"{name}.html"


def write_index(answers: dict[str, str]) -> Path:
    """Writes the page that leads to the others: each question, and what this run answered."""
    questions = readme_answers()
    rows = "".join(
        f"<tr><td><a href='{name}.html'>{name}</a><td>{escape(questions[name][0])}<td>{escape(text)}"
        for name, text in answers.items()
    )
    head = (
        "<!doctype html><html lang=en><meta "
        "charset=utf-8><title>Notebooks</title><style>body{font:16px sans-serif;margin:2em}"
    )
    style = "td{padding:.4em 1em .4em 0;vertical-align:top;border-top:1px solid #ccc}</style>"
    (FOLDER / "index.html").write_text(
        f"{head}{style}<h1>Notebooks</h1><table>{rows}</table></html>\n", encoding="utf-8"
    )
    return FOLDER / "index.html"


def main(names: list[str]) -> None:
    """Runs the notebooks, two at a time, and writes a page for each and the index."""
    paths = [path for path in NOTEBOOKS if not names or path.stem in names]
    with ThreadPoolExecutor(2) as threads:
        runs = dict(
            zip((path.stem for path in paths), threads.map(run, map(read, paths)), strict=True)
        )
    for name, notebook in runs.items():
        print(write_page(name, notebook))
    print(write_index({name: answer(notebook) for name, notebook in runs.items()}))


if __name__ == "__main__":
    main(sys.argv[1:])
