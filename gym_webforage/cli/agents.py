"""The agents that ``webforage play`` knows, and the loading of others."""

from __future__ import annotations

import importlib
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from gym_webforage.cli.common import clear_errors, fail


def legal_actions(observation: Any, info: Any) -> np.ndarray:
    """Return the actions that may be taken: slots, or URLs in order of discovery."""
    mask = observation.get("action_mask")
    return info["action_set"] if mask is None else np.flatnonzero(mask)


class RandomAgent:
    """Chooses uniformly among the legal actions."""

    slots: int | None = None

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl."""
        # The second number keeps the stream apart from the environment's.
        self.random = np.random.default_rng(None if seed is None else [seed, 1])

    def act(self, observation: Any, info: Any) -> int:
        """Draw one."""
        return int(self.random.choice(legal_actions(observation, info)))


class FirstAgent:
    """Chooses the legal action that was discovered first."""

    slots: int | None = None

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl."""

    def act(self, observation: Any, info: Any) -> int:
        """Take the first."""
        return int(legal_actions(observation, info)[0])


BUILT_IN = {"random": RandomAgent, "first": FirstAgent}


def agent_module(name: str) -> Any:
    """Return the module that makes an agent; None for one that is built in.

    Files and settings are left to the package of baselines, if it can be imported.
    """
    if name in BUILT_IN:
        return None
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    ours = _baselines()
    known = f"built in are {', '.join(BUILT_IN)}, else give "
    if ours is not None:
        known += f"a baseline ({', '.join(ours.names())}), a .py file or "
    known += "a module that offers make(env, seed)"
    is_special = ":" in name or name.endswith(".py")
    if ours is not None and (is_special or name in ours.names()):
        try:
            return ours.load(name)
        except ours.NoAgentError as error:
            fail(error)
    if is_special:
        known += "; files and settings work where the package baselines can be imported"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            fail(f"there is no agent {name!r}; {known}")
        raise
    except (TypeError, ValueError):  # such as a relative or empty name
        fail(f"there is no agent {name!r}; {known}")
    if not callable(getattr(module, "make", None)):
        fail(f"the module {name} is no agent: it has no function make(env, seed)")
    return module


def _baselines() -> Any:
    """Return the package of baselines, None where it cannot be imported."""
    try:
        found = importlib.import_module("baselines")
    except ModuleNotFoundError:
        return None
    return found if hasattr(found, "NoAgentError") else None  # others have that name


def check_kind(name: str, module: Any, kind: str) -> None:
    """Refuse an agent that is made for other kinds of environments."""
    kinds = getattr(module, "KINDS", (kind,))
    if kind not in kinds:
        fail(f"{name} is for {' and '.join(kinds)}, not for {kind}")


def make_agent(name: str, module: Any, env: Any, seed: int) -> Any:
    """Make an agent for an environment."""
    if module is None:
        return BUILT_IN[name]()
    # What a baseline refuses, a user can mend; who writes an agent needs a traceback.
    is_ours = getattr(module, "module", module).__name__.startswith("baselines.")
    with clear_errors() if is_ours else nullcontext():
        return module.make(env, seed)
