"""Where derived files live: generated traces, memory-mapped traces, compiled code.

Everything below the cache folder can be deleted at any time; it is made anew when
needed. The folder follows the platform's convention (``~/.cache/gym_webforage`` on
Linux) and ``$GYM_WEBFORAGE_CACHE`` overrides it.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import platformdirs

ENVIRONMENT_VARIABLE = "GYM_WEBFORAGE_CACHE"


def cache_path() -> Path:
    """Return the cache folder's place, whether or not it exists or can be written."""
    override = os.environ.get(ENVIRONMENT_VARIABLE)
    if override:
        return Path(os.path.expanduser(override))
    return platformdirs.user_cache_path("gym_webforage", appauthor=False)


def writable(folder: Path) -> bool:
    """Make ``folder`` if need be and say whether files can be created in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def cache_folder(part: str) -> Path | None:
    """Return a writable folder ``part`` of the cache, or None with a warning."""
    folder = cache_path() / part
    if writable(folder):
        return folder
    warnings.warn(
        f"The cache folder {folder} cannot be written, so this process keeps "
        f"{part} in memory. Set ${ENVIRONMENT_VARIABLE} to a writable folder.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None
