"""What a training method offers to the loop in `baselines._training`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from baselines._set_policy import SetNetwork
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
