"""What a training method offers to the loop in `baselines._training`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from baselines._set_policy import SetNetwork
from baselines._set_scorer import z_signs
from baselines._weights import Weights


class Trainer(Protocol):
    """Learns in rounds; between two of them its whole state can be kept."""

    steps: int
    """Environment steps so far."""

    def round(self) -> dict[str, float]:
        """Go on for one round; return what to log."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights as they are now."""
        ...

    def agent(self, world: Any, weights: Weights) -> Any:
        """Make a forager with these weights, for validation: exact."""
        ...

    def save(self) -> dict[str, Any]:
        """Return all that the next rounds depend on, as arrays and plain values."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        ...


def save_optimizer(optimizer: Any) -> dict[str, Any]:
    """Return the state of an Adam optimiser as arrays."""
    state = optimizer.state_dict()["state"]
    return {
        str(key): {name: np.asarray(value) for name, value in entry.items()}
        for key, entry in state.items()
    }


def load_optimizer(optimizer: Any, saved: dict[str, Any]) -> None:
    """Put back what `save_optimizer` returned."""
    import torch

    whole = optimizer.state_dict()
    whole["state"] = {
        int(key): {name: torch.tensor(value) for name, value in entry.items()}
        for key, entry in saved.items()
    }
    optimizer.load_state_dict(whole)


def load_network(network: SetNetwork, arrays: dict[str, Any]) -> None:
    """Put weights into a network."""
    import torch

    network.load_state_dict({k: torch.tensor(v) for k, v in arrays.items()})


def network_settings(
    columns: list[str], residual: bool, attention: bool, seed: int
) -> dict[str, Any]:
    """Return what a policy makes its network with."""
    return {
        "signs": z_signs(columns),
        "residual": residual,
        "attention": attention,
        "seed": seed,
    }


# --- what models of Stable-Baselines3 keep of their course


def logged_by(model: Any) -> dict[str, float]:
    """Return what a model logged last, and the mean return of recent crawls."""
    logged = {k: float(v) for k, v in model.logger.name_to_value.items()}
    if model.ep_info_buffer:
        recent = [episode["r"] for episode in model.ep_info_buffer]
        logged["rollout/return"] = float(np.mean(recent))
    return logged


def save_course(model: Any) -> dict[str, Any]:
    """Return how far a model is."""
    return {
        "steps": model.num_timesteps,
        "updates": model._n_updates,
        "left": model._current_progress_remaining,
        "episodes": [float(episode["r"]) for episode in model.ep_info_buffer],
    }


def load_course(model: Any, state: dict[str, Any]) -> None:
    """Put back what `save_course` returned."""
    model.num_timesteps = state["steps"]
    model._n_updates = state["updates"]
    model._current_progress_remaining = state["left"]
    model.ep_info_buffer.extend({"r": r, "l": 0} for r in state["episodes"])
