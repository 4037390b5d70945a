"""A command loads what it uses: what a process imports, not how long that takes, for a busy machine
is slow at everything."""

import json
import subprocess
import sys
from pathlib import Path

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


PAGES = ("chat", "traces", "plans", "compare", "cards", "metrics")
CODE = f"""
import json, sys
from kit.cli import main
loaded = {{}}
def note(step):
    loaded[step] = sorted(sys.modules)
assert main(["check", "cards/consumer"]) == 0
note("check")
assert main(["ask", "How many points do I have?"]) == 0
note("ask")
import kit.ui.benchmarks.page
note("benchmarks")
{"".join(f"import kit.ui.{page}.page" + chr(10) for page in PAGES)}
note("pages")
print(json.dumps(loaded))
"""
"""From what loads least to what loads most: a process takes longer to start than all of it."""


def test_a_command_loads_what_it_uses_and_a_page_charts_and_the_bench_only_where_it_shows_them(
    tmp_path: Path,
):
    environment = {"KIT_MODEL": "offline", "KIT_PACE": "0", "KIT_STORE": str(tmp_path / "kit.db")}
    printed = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment
    ).stdout
    modules = {step: set(names) for step, names in json.loads(printed.splitlines()[-1]).items()}
    for step, unneeded in (("check", SHOWN | CONFIGURED | MODELS), ("ask", SHOWN | CONFIGURED)):
        packages = {name.partition(".")[0] for name in modules[step]}
        assert "kit" in packages and packages & unneeded == set(), step
    assert not modules["benchmarks"] & {"kit.bench", *SHOWN - {"streamlit"}}
    assert "altair" not in modules["pages"]
