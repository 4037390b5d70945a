"""Packages that only a part of the kit needs, and the line that installs them."""

from importlib.util import find_spec

from kit.core.display.distribution import NAME
from kit.core.errors import SettingsError


def require(extra: str, *packages: str) -> None:
    """Raises SettingsError, with the line that installs the extra, where one of these packages is not installed."""
    # Looked for and not imported: a package may take seconds, and is imported where it is used.
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"missing here: {', '.join(missing)}; run: pip install '{NAME}[{extra}]'"
        )
