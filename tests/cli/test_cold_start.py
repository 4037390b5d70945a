"""A process loads what it uses: what it imports, not how long that takes, for a busy machine
is slow at everything."""

import json
import subprocess
import sys

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
SPEAKING_WITH_REDIS = ("coredis", "streaq", "cryptography")
PAGES = ("chat", "traces", "plans", "compare", "cards", "metrics")
CODE = f"""
import json, sys
def note(step):
    print(json.dumps([step, *sys.modules]))
import kit

note("import kit")
deck = kit.Deck.of([kit.AgentCard(id="a", description="A.", model="offline")], required_blocks=())
assert "kit-value" in deck._repr_html_()
note("value")
import kit.sinks.opentelemetry
note("sink")
from kit.cli import main
assert main(["check", "cards/consumer"]) == 0
note("check")
assert main(["ask", "How many points do I have?"]) == 0
note("ask")
import kit.ui.benchmarks.page
note("benchmarks")
{"".join(f"import kit.ui.{page}.page" + chr(10) for page in PAGES)}
note("pages")
for package in {SPEAKING_WITH_REDIS}:
    assert package not in sys.modules
    sys.modules[package] = None
import asyncio
from kit.cli import serve, worker
from kit.service.api import create_app
from kit.service.queued_plans import open_queued_plans
from kit.settings import Settings
async def opens():
    async with open_queued_plans(Settings()) as plans:
        assert plans is None and len(create_app().routes) > 5
asyncio.run(opens())
note("serve")
"""
"""From what loads least to what loads most: a process takes longer to start than all of it."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The modules that a process has loaded after each step, as far as it came."""
    store = tmp_path_factory.mktemp("store") / "kit.db"
    environment = {"KIT_MODEL": "offline", "KIT_PACE": "0", "KIT_STORE": str(store)}
    child = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False, env=environment
    )
    print(child.stderr)
    lines = [line for line in child.stdout.splitlines() if line.startswith('["')]
    return {step: set(modules) for step, *modules in map(json.loads, lines)}


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def test_import_kit_loads_nothing_heavy(loaded: dict[str, set[str]]):
    heavy = SHOWN | CONFIGURED | MODELS | {"pydantic"}
    assert packages(loaded["import kit"]) & heavy == set()


@pytest.mark.req("K-26")
def test_showing_a_value_loads_no_library_of_tables_or_charts(loaded: dict[str, set[str]]):
    unneeded = SHOWN | {"IPython", "jinja2", "langchain_core"}
    assert packages(loaded["value"]) & unneeded == set()


def test_importing_the_sink_loads_no_opentelemetry(loaded: dict[str, set[str]]):
    assert "kit.sinks.opentelemetry" in loaded["sink"]
    assert "opentelemetry" not in packages(loaded["sink"])


def test_a_command_loads_what_it_uses(loaded: dict[str, set[str]]):
    assert packages(loaded["check"]) & (SHOWN | CONFIGURED | MODELS) == set()
    assert packages(loaded["ask"]) & (SHOWN | CONFIGURED) == set()


def test_a_page_loads_charts_and_the_bench_only_where_it_shows_them(loaded: dict[str, set[str]]):
    assert not loaded["benchmarks"] & {"kit.bench", *SHOWN - {"streamlit"}}
    assert "altair" not in loaded["pages"]


@pytest.mark.req("AS-22")
def test_who_serves_without_redis_needs_nothing_that_speaks_with_it(loaded: dict[str, set[str]]):
    """What `pip install subagent-kit[serve]` brings."""
    assert "serve" in loaded
