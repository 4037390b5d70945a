"""Where the browser is."""

import os
import shutil


def chromium() -> str | None:
    """Path of the browser to drive: KIT_CHROMIUM, else the system's; None when there is none."""
    named = (os.environ.get("KIT_CHROMIUM"), "chromium", "chromium-browser")
    return next((path for name in named if name and (path := shutil.which(name))), None)
