"""Record a piece of the web once, replay it a million times, compare any crawler.

Importing this package registers ``WebForage/News-v0``, ``WebForage/Topic-v0``,
``WebForage/Spider-v0`` and ``WebForage/Fleet-v0`` with Gymnasium; PettingZoo's fleets
are in `gym_webforage.fleet_v0`. Nothing is read and nothing heavy is loaded
before an environment is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import register

if TYPE_CHECKING:
    from gym_webforage.trace import (
        Trace,
        TraceError,
        TraceNotFoundError,
        load_trace,
        save_trace,
        trace_names,
    )

__version__ = "0.1.0"

__all__ = [
    "Trace",
    "TraceError",
    "TraceNotFoundError",
    "load_trace",
    "save_trace",
    "trace_names",
]

for _kind in ("News", "Topic", "Spider"):
    register(
        id=f"WebForage/{_kind}-v0",
        entry_point=f"gym_webforage.envs:{_kind}Env",
        vector_entry_point=f"gym_webforage.envs:{_kind}VectorEnv",
    )

register(id="WebForage/Fleet-v0", entry_point="gym_webforage.envs.fleet:FleetEnv")


def __getattr__(name: str) -> Any:
    """Load the names of ``gym_webforage.trace`` when they are first used."""
    if name in __all__:
        import gym_webforage.trace as trace

        return getattr(trace, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
