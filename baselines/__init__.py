"""Crawlers to compare with: one method a file, found by looking into this folder.

A file without a leading underscore is a baseline, `agent` and `fleet` aside. It offers
``make(env, seed) -> Agent``, and that is all it takes to be tested and ranked.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent
LOOPS = ("agent", "fleet")  # what lets agents run; no baselines


def names() -> list[str]:
    """Return the names of all baselines, sorted."""
    return sorted(
        file.stem
        for file in FOLDER.glob("*.py")
        if not file.stem.startswith("_") and file.stem not in LOOPS
    )


def find(name: str) -> Path:
    """Return the file of a baseline, or of an agent elsewhere, without running it.

    ``name`` is a baseline's, a module's (``my_package.my_agent``) or a ``.py`` file.
    """
    if name.endswith(".py"):
        file = Path(name)
        if file.is_file():
            return file.resolve()
    elif name in names():
        return FOLDER / f"{name}.py"
    else:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is not None and spec.origin and Path(spec.origin).is_file():
            return Path(spec.origin)
    raise LookupError(
        f"there is no agent {name!r}; the baselines are {', '.join(names())}, and a "
        "module's name or a .py file works as well"
    )


def load(name: str) -> ModuleType:
    """Import a baseline, or an agent elsewhere; see `find` for what a name is."""
    file = find(name)
    if name.endswith(".py"):
        own_name = f"agent_file_{file.stem}"  # hides no module of the file's name
        spec = importlib.util.spec_from_file_location(own_name, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look their own module up here.
        sys.modules[own_name] = module
        spec.loader.exec_module(module)
    else:
        inside = name in names()
        module = importlib.import_module(f"baselines.{name}" if inside else name)
    if not callable(getattr(module, "make", None)):
        raise TypeError(f"{file} offers no make(env, seed)")
    return module
