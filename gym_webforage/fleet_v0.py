"""The PettingZoo door: foragers in turns (`env`) or all at once (`parallel_env`).

>>> from gym_webforage import fleet_v0
>>> env = fleet_v0.env("synthetic-small-v0", founders=3, population="score")
>>> env.reset(seed=1)
>>> env.agents
['forager_0', 'forager_1', 'forager_2']
"""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import wrappers

from gym_webforage.envs.fleet import FleetAECEnv, FleetParallelEnv
from gym_webforage.trace import Trace

__all__ = ["env", "parallel_env", "raw_env"]


def raw_env(trace: str | Trace | None = None, **kwargs: Any) -> FleetAECEnv:
    """Make the environment in turns, without the check of the order of calls."""
    return FleetAECEnv(trace, **kwargs)


def env(
    trace: str | Trace | None = None, **kwargs: Any
) -> wrappers.OrderEnforcingWrapper[str, Any, Any]:
    """Make the environment in turns; see `FleetAECEnv` for the arguments."""
    return wrappers.OrderEnforcingWrapper(raw_env(trace, **kwargs))


def parallel_env(trace: str | Trace | None = None, **kwargs: Any) -> FleetParallelEnv:
    """Make the environment in rounds; see `FleetParallelEnv` for the arguments."""
    return FleetParallelEnv(trace, **kwargs)
