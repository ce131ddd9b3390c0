"""The browser that tests drive and that prints: the system's, or the one that CHROMIUM names."""

import os
import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
"""What systems call it. The shell has no windows, so it draws with a third less work."""

CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
"""Its path; None if there is none."""
