"""Weights of learned methods: a safetensors file, and a card beside it in JSON.

``weights/masked_ppo-focused.safetensors`` are the arrays, ``.json`` tells what they
were trained for and on, and with which command. Topic and Spider share one set of
weights (*focused*), News has its own.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gym_webforage.world import World

FOLDER = Path(__file__).parent / "weights"

State = dict[str, np.ndarray]


def family(kind: str) -> str:
    """Return which weights serve a kind of environment: focused or news."""
    return "news" if kind == "news" else "focused"


def columns_of(world: World) -> list[str]:
    """Return the names of the columns of a candidate's row."""
    return list(world.feature_names)


@dataclass
class Weights:
    """Arrays and their card."""

    arrays: State = field(repr=False)
    card: dict[str, Any]

    def save(self, file: Path) -> None:
        """Write both files; each is there whole or not at all."""
        from safetensors.numpy import save

        file.parent.mkdir(parents=True, exist_ok=True)
        arrays = {name: np.ascontiguousarray(a) for name, a in self.arrays.items()}
        _replace(file.with_suffix(".safetensors"), save(arrays))
        text = json.dumps(self.card, indent=2, ensure_ascii=False) + "\n"
        _replace(file.with_suffix(".json"), text.encode())

    @classmethod
    def load(cls, file: Path) -> Weights:
        """Read both files."""
        from safetensors.numpy import load_file

        try:
            arrays = load_file(file.with_suffix(".safetensors"))
            card = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{error.filename or file} does not exist; python -m baselines.train "
                "makes weights, and --help tells how"
            ) from None
        except Exception as error:
            raise ValueError(f"{file} holds no weights: {error}") from error
        return cls(arrays, card)

    def places(self, columns: list[str]) -> np.ndarray:
        """Return where the columns that were trained on stand among ``columns``."""
        missing = [name for name in self.card["columns"] if name not in columns]
        if missing:
            raise ValueError(
                f"these weights need the columns {', '.join(missing)}, which this "
                f"environment does not have; it has {', '.join(columns)}"
            )
        return np.array([columns.index(name) for name in self.card["columns"]])


def load_weights(method: str, world: World, given: str = "") -> Weights:
    """Return the weights of a method for a world: those given, or the shipped ones."""
    kind = world.rules.kind
    file = Path(given) if given else FOLDER / f"{method}-{family(kind)}"
    weights = Weights.load(file)
    made_for = weights.card["method"], weights.card["family"]
    expected = method.removesuffix("_plain"), family(kind)
    if made_for != expected:
        raise ValueError(
            f"{file} is for {made_for[0]} in {made_for[1]} crawls, "
            f"expected {expected[0]} in {expected[1]} ones"
        )
    return weights


def _replace(file: Path, content: bytes) -> None:
    beside = file.with_name(f".{file.name}.new")
    beside.write_bytes(content)
    os.replace(beside, file)
