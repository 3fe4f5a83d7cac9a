"""Which code a run depends on, as a checksum.

That is the package (but not how traces are recorded, nor its command line), the loops
that let agents run, the agent's file, and of the other files in `baselines/` those that
it imports or names. So a row outlives new baselines, but no change of its own method.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import baselines
import gym_webforage

LOOPS = ("agent", "fleet")  # that all runs go through
APART = ("cli", "record")  # rooms of the package that no run enters


def checksum(*agents: str) -> str:
    """Return a checksum of the code that runs of these agents depend on."""
    total = hashlib.sha256(_package().encode())
    for file in sorted({file for agent in agents for file in _needed(agent)}):
        total.update(file.read_bytes())
    return total.hexdigest()[:20]


@cache
def _package() -> str:
    home = Path(gym_webforage.__file__).parent
    total = hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        if file.relative_to(home).parts[0] not in APART:
            total.update(file.read_bytes())
    return total.hexdigest()


def _needed(agent: str) -> set[Path]:
    """Return the files of an agent, those that all agents need included."""
    waiting = [baselines.find(agent)]
    waiting += [baselines.FOLDER / f"{name}.py" for name in LOOPS]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            if file.suffix == ".py":
                waiting.extend(_mentioned(file))
    return found


def _mentioned(file: Path) -> Iterator[Path]:
    """Return the files of `baselines/` that a file imports, and data that it names."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError:  # which the run itself will tell
        return
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _data(node.value)
        for name in names:
            first, _, rest = name.partition(".")
            module = baselines.FOLDER / f"{rest.partition('.')[0]}.py"
            if first == "baselines" and module.is_file():
                yield module


def _data(text: str) -> Iterator[Path]:
    """Return the files that a text names: a file, or a folder with all that it holds.

    Weights that a method ships are as much a part of it as its code.
    """
    if not text or len(text) > 100 or text.startswith((".", "/")) or "\n" in text:
        return
    place = baselines.FOLDER / text
    try:
        if place.is_dir() and place.parent == baselines.FOLDER:
            files = (file for file in place.rglob("*") if file.is_file())
            yield from (file for file in files if file.suffix != ".pyc")
        elif place.is_file() and place.suffix != ".py":
            yield place
    except OSError:
        return
