from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gym_webforage.cache import ENVIRONMENT_VARIABLE

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start background jobs so; the programs under test would not hear Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; other tests share the user's, which saves minutes."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(folder))
    return folder
