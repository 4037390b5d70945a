"""The page of a run: one HTML file that holds all it shows."""

from pathlib import Path

from kit.bench.grid.comparison import LOWER
from kit.bench.grid.failures import way_name
from kit.bench.run_page.content import RunContent, read_content, wrong_cases
from kit.bench.run_page.sentences import methods, verdicts_by_measure
from kit.bench.statistics.verdict import figure_words, interval_words
from kit.core.display.count import many
from kit.core.display.distribution import NAME, VERSION
from kit.core.errors import DataError
from kit.core.extra import require


def write_page(folder: Path, out: Path, figures: Path | None = None) -> None:
    """Writes the page of the run in a folder, and its figures as files where `figures` names a folder
    for them. Raises DataError for a folder without results, and where a file cannot be written."""
    text = run_page(folder, figures)
    try:
        out.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error.strerror or error}") from error


def run_page(folder: Path, figures: Path | None = None) -> str:
    """Returns the page. Whatever a model or a case said is escaped by the template."""
    require("bench", "jinja2", "matplotlib", "pandas")
    from kit.bench.charts.run_figures import page_figures

    content = read_content(folder)
    if not content.rows:
        raise DataError(f"{folder} has no scored turn to report: run the grid again")
    paragraph, references = methods(content)
    return section(
        "page",
        content,
        run=content.run,
        last=content.run.runs[-1],
        figures=page_figures(content, figures),
        wrong=wrong_cases(content),
        methods=paragraph,
        references=references,
        distribution=f"{NAME} {VERSION}",
    )


def section(
    name: str,
    content: RunContent,
    *,
    folds: bool = False,
    **values: object,
) -> str:
    """Returns a template of this folder as HTML, such as `verdicts`, `ways` or `spends`.

    `folds`: what cannot be told apart is shown on a click; on paper nobody can click.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        # A misspelt name is an error and not an empty place on the page.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(f"{name}.html").render(
        content=content,
        verdicts=verdicts_by_measure(content),
        folds=folds,
        lower=LOWER,
        kinds=" and ".join(content.run.kinds),
        way_name=way_name,
        figure_words=figure_words,
        interval_words=interval_words,
        many=many,
        **values,
    )
