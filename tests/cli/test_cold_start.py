"""A command loads what it uses: what a process imports, not how long that takes, for a busy machine
is slow at everything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SHOWN = {"altair", "matplotlib", "pandas", "scipy", "statsmodels", "streamlit"}
CONFIGURED = {
    "a2a",
    "alembic",
    "fastapi",
    "jsonschema",
    "langchain_openai",
    "mcp",
    "openai",
    "opik",
    "uvicorn",
}
MODELS = {"httpx", "langchain_core", "langsmith", "numpy", "requests", "sqlalchemy", "tokenizers"}


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["check", "cards/consumer"], SHOWN | CONFIGURED | MODELS),
        (["ask", "How many points do I have?"], SHOWN | CONFIGURED),
    ],
    ids=["check", "ask"],
)
def test_a_command_loads_what_it_uses(arguments: list[str], unneeded: set[str], tmp_path: Path):
    code = (
        f"import json, sys; from kit.cli import main; assert main({arguments}) == 0; "
        f"print(json.dumps(sorted(sys.modules)))"
    )
    environment = {"KIT_MODEL": "offline", "KIT_PACE": "0", "KIT_STORE": str(tmp_path / "kit.db")}
    lines = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    modules = {name.partition(".")[0] for name in json.loads(lines.splitlines()[-1])}
    assert "kit" in modules and modules & unneeded == set()


PAGES = ("chat", "traces", "plans", "compare", "cards", "metrics")


def test_a_page_loads_charts_and_the_bench_only_where_it_shows_them():
    others = "; ".join(f"import kit.ui.{page}.page" for page in PAGES)
    modules = "sorted(sys.modules)"
    code = f"import json, sys, kit.ui.benchmarks.page; first = {modules}; {others}; print(json.dumps([first, {modules}]))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    of_benchmarks, of_all = json.loads(printed)
    assert not set(of_benchmarks) & {"kit.bench", *SHOWN - {"streamlit"}}
    assert "altair" not in of_all
