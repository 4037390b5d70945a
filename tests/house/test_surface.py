"""What `import kit` offers, and what it costs."""

import subprocess
import sys

import kit

NAMES = set(
    [
        "AgentCall",
        "AgentCard",
        "Answer",
        "bind",
        "Cassette",
        "compare",
        "Deck",
        "dispatch",
        "Event",
        "ExperimentKits",
        "Failure",
        "fan_out",
        "FanOut",
        "GridResult",
        "Kit",
        "KitError",
        "Line",
        "load_deck",
        "OfflineModel",
        "open_kit",
        "PATTERNS",
        "Picture",
        "Principal",
        "Reply",
        "RoutingDecision",
        "run_turn",
        "run_virtual",
        "ScriptedModel",
        "Session",
        "Settings",
        "Span",
        "Team",
        "Trace",
        "trace_home",
        "trace_of",
        "Turn",
        "Usage",
    ]
)


def test_the_public_surface_is_pinned_and_sorted():
    assert sorted(NAMES, key=str.casefold) == kit.__all__


def test_every_public_name_loads():
    for name in kit.__all__:
        assert getattr(kit, name) is not None


def test_import_kit_loads_nothing_heavy():
    heavy = "{'langchain_core', 'opik', 'streamlit', 'pandas', 'matplotlib', 'pydantic', 'numpy', 'fastapi'}"
    code = f"import sys, kit; print(sorted({heavy} & set(sys.modules)))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert told.strip() == "[]"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    assert not hasattr(kit, "nothing_of_the_kind")
