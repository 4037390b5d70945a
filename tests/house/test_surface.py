"""What `import kit` offers, and what it costs."""

import subprocess
import sys

import kit


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
