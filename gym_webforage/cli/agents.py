"""The agents that ``webforage play`` knows, and the loading of others."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gym_webforage.cli.common import fail


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


def agent_module(name: str) -> ModuleType | None:
    """Import the module that makes an agent; None for one that is built in."""
    if name in BUILT_IN:
        return None
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    known = (
        f"built in are {', '.join(BUILT_IN)}, else give a module that offers "
        "make(env, seed), such as baselines.best_first from the repository's root"
    )
    if Path(f"baselines/{name}.py").is_file():
        name = f"baselines.{name}"  # as the leaderboard calls them
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


def make_agent(name: str, module: ModuleType | None, env: Any, seed: int) -> Any:
    """Make an agent for an environment."""
    return BUILT_IN[name]() if module is None else module.make(env, seed)
