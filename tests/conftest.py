from __future__ import annotations

from pathlib import Path

import pytest

from gym_webforage.cache import ENVIRONMENT_VARIABLE


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; other tests share the user's, which saves minutes."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(folder))
    return folder
