"""Many crawls to train on at once: several sources in one batch, and fleets.

Both are Stable-Baselines3 ``VecEnv``, and can be taken and put back as plain arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from baselines._training_tasks import Source
from gym_webforage import fleet_v0
from gym_webforage.envs.sb3 import ForageVecEnv, make_sb3_env
from gym_webforage.world import World
from gym_webforage.world import layout as L


class TrainingBatch(VecEnv):
    """Crawls of several sources side by side, in the same slots.

    News pays in units of one novel page, less ``price`` for each fetch, since a visit
    there costs as many fetches as it has links.
    """

    def __init__(self, parts: Sequence[Any], price: float = 0.0) -> None:
        self.parts = list(parts)
        self.price = price
        self.fetches = 0  # so far, without those of each crawl's last visit in News
        shapes = {part.observation_space["candidates"].shape for part in self.parts}
        if len(shapes) > 1:
            raise ValueError(f"candidates have different shapes: {sorted(shapes)}")
        bound = max(_bound(part.observation_space) for part in self.parts)
        space = dict(self.parts[0].observation_space.spaces)
        space["candidates"] = spaces.Box(-bound, bound, shapes.pop(), np.float32)
        self._edges = np.cumsum([0, *(part.num_envs for part in self.parts)]).tolist()
        super().__init__(
            self._edges[-1], spaces.Dict(space), self.parts[0].action_space
        )

    def worlds(self) -> list[tuple[World, int]]:
        """Return the world and the forager's number behind each place."""
        return [pair for part in self.parts for pair in worlds_of(part)]

    def reset(self) -> dict[str, np.ndarray]:
        """Start all crawls."""
        for part, begin, end in self._places():
            part._seeds = self._seeds[begin:end]
        self._reset_seeds()
        return _joined([part.reset() for part in self.parts])

    def step_async(self, actions: np.ndarray) -> None:
        """Hand out the actions."""
        for part, begin, end in self._places():
            part.step_async(actions[begin:end])

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take the step."""
        observations, rewards, dones = [], [], []
        infos: list[dict[str, Any]] = []
        for part in self.parts:
            observation, reward, done, info = part.step_wait()
            observations.append(observation)
            rewards.append(self._priced(part, reward))
            dones.append(done)
            infos += info
        return (
            _joined(observations),
            np.concatenate(rewards).astype(np.float32),
            np.concatenate(dones),
            infos,
        )

    def _priced(self, part: Any, rewards: np.ndarray) -> np.ndarray:
        first = worlds_of(part)[0][0].rules
        if first.kind != "news":
            self.fetches += part.num_envs
            return rewards
        fetched = np.array(
            [
                world.foragers[number].ints[L.LAST_FETCHES]
                for world, number in worlds_of(part)
            ]
        )
        self.fetches += int(fetched.sum())
        return rewards / (abs(first.reward) or 1) - self.price * fetched

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        parts = [part.snapshot() for part in self.parts]
        return {"parts": parts, "fetches": self.fetches}

    def restore(self, snapshot: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Put back a state that `snapshot` took; return the observation there."""
        self.fetches = int(snapshot["fetches"])
        states = zip(self.parts, snapshot["parts"], strict=True)
        return _joined([part.restore(state) for part, state in states])

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal now."""
        return np.concatenate([part.action_masks() for part in self.parts])

    def close(self) -> None:
        """Close all parts."""
        for part in self.parts:
            part.close()

    def _places(self) -> list[tuple[Any, int, int]]:
        return list(zip(self.parts, self._edges[:-1], self._edges[1:], strict=True))

    # --- the rest of what Stable-Baselines3 asks for

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, by place."""
        if attr_name == "render_mode":
            return [None] * self.num_envs
        found = [part.get_attr(attr_name) for part in self.parts]
        return _picked([one for part in found for one in part], indices)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all parts."""
        for part in self.parts:
            part.set_attr(attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Call a method of all parts."""
        found = [part.env_method(method_name, *args, **kwargs) for part in self.parts]
        return _picked([one for part in found for one in part], indices)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Say that nothing is wrapped."""
        return _picked([False] * self.num_envs, indices)


class FleetBatch(VecEnv):
    """Fleets whose foragers share one policy, each forager a place in the batch.

    Foragers of a fleet crawl the same world through `fleet_v0.parallel_env`. One that
    has nothing left to visit waits, with a single legal action that does nothing, until
    its fleet's crawl ends.
    """

    def __init__(self, source: Source, fleets: int, foragers: int) -> None:
        self.foragers = foragers
        self.fleets = [
            fleet_v0.parallel_env(
                source.trace,
                kind=source.kind,
                founders=foragers,
                max_births=foragers,
                log=False,
                **source.rules(),
            )
            for _ in range(fleets)
        ]
        self.names = self.fleets[0].possible_agents
        for fleet in self.fleets:
            fleet.crew.episodes = source.episodes()
        self._actions = np.zeros(fleets * foragers, np.int64)
        self._returns = np.zeros(fleets * foragers)
        self._lengths = np.zeros(fleets * foragers, np.int64)
        super().__init__(
            fleets * foragers,
            self.fleets[0].observation_space("forager_0"),
            self.fleets[0].action_space("forager_0"),
        )

    def reset(self) -> dict[str, np.ndarray]:
        """Start all crawls; a fleet's seed is that of its first forager."""
        for place, fleet in enumerate(self.fleets):
            fleet.reset(seed=self._seeds[place * self.foragers])
        self._reset_seeds()
        self._returns[:] = 0
        self._lengths[:] = 0
        return self._observe()

    def _observe(self) -> dict[str, np.ndarray]:
        seen = [self._observation(*where) for where in self._everyone()]
        return {key: np.stack([one[key] for one in seen]) for key in seen[0]}

    def _everyone(self) -> list[tuple[int, int]]:
        return [(f, n) for f in range(len(self.fleets)) for n in range(self.foragers)]

    def _observation(self, fleet: int, number: int) -> dict[str, np.ndarray]:
        seen = self.fleets[fleet].crew.observation(number)
        if self.names[number] not in self.fleets[fleet].agents:
            seen = {key: np.zeros_like(value) for key, value in seen.items()}
            seen["action_mask"][0] = 1
        return seen

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Let all fleets take a round."""
        rewards = np.zeros(self.num_envs, np.float32)
        dones = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for place, fleet in enumerate(self.fleets):
            begin = place * self.foragers
            chosen = {
                name: int(self._actions[begin + self.names.index(name)])
                for name in fleet.agents
            }
            _, paid, _, truncated, _ = fleet.step(chosen)
            for name, reward in paid.items():
                rewards[begin + self.names.index(name)] = reward
            here = slice(begin, begin + self.foragers)
            self._returns[here] += rewards[here]
            self._lengths[here] += 1
            if not fleet.agents:
                self._end(place, any(truncated.values()), dones, infos)
        return self._observe(), rewards, dones, infos

    def _end(
        self, place: int, cut: bool, dones: np.ndarray, infos: list[dict[str, Any]]
    ) -> None:
        for number in range(self.foragers):
            at = place * self.foragers + number
            dones[at] = True
            infos[at] = {
                "terminal_observation": self.fleets[place].crew.observation(number),
                "TimeLimit.truncated": cut,
                "episode": {
                    "r": float(self._returns[at]),
                    "l": int(self._lengths[at]),
                    "t": 0.0,
                },
            }
            self._returns[at] = self._lengths[at] = 0
        self.fleets[place].reset()

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        return {
            "fleets": [fleet.crew.snapshot() for fleet in self.fleets],
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Put back a state that `snapshot` took; return the observation there."""
        for fleet, state in zip(self.fleets, snapshot["fleets"], strict=True):
            fleet.crew.restore(state)
            fleet.agents = [fleet.crew.names[n] for n in fleet.fleet.order]
        self._returns = np.array(snapshot["returns"])
        self._lengths = np.array(snapshot["lengths"])
        return self._observe()

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal now."""
        masks = [self._observation(*where)["action_mask"] for where in self._everyone()]
        return np.stack(masks).astype(np.bool_)

    def close(self) -> None:
        """Close all fleets."""
        for fleet in self.fleets:
            fleet.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the fleets, by place."""
        if attr_name == "render_mode":
            return [None] * self.num_envs
        found = [getattr(self.fleets[f], attr_name) for f, _ in self._everyone()]
        return _picked(found, indices)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all fleets."""
        for fleet in self.fleets:
            setattr(fleet, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Return masks by place, which is all that is asked for."""
        if method_name != "action_masks":
            raise AttributeError(f"a fleet's place has no {method_name}")
        return _picked(list(self.action_masks()), indices)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Say that nothing is wrapped."""
        return _picked([False] * self.num_envs, indices)


def make_training_batch(
    found: Sequence[Source],
    num_envs: int,
    *,
    slots: int = 128,
    foragers: int = 1,
    price: float = 0.0,
) -> TrainingBatch:
    """Make a batch with places shared out evenly among the sources."""
    share = max(1, num_envs // (len(found) * foragers))
    parts: list[Any] = []
    for source in found:
        if foragers > 1:
            sized = Source(
                source.kind,
                source.trace,
                source.budget,
                {**source.options, "slots": slots},
            )
            parts.append(FleetBatch(sized, share, foragers))
            continue
        part = make_sb3_env(
            f"WebForage/{source.kind.capitalize()}-v0",
            num_envs=share,
            trace=source.trace,
            slots=slots,
            **source.rules(),
        )
        part.batch.episodes = source.episodes()
        parts.append(part)
    return TrainingBatch(parts, price)


def worlds_of(part: Any) -> list[tuple[World, int]]:
    """Return the world and the forager's number behind each place of a part."""
    if isinstance(part, ForageVecEnv):
        return [(world, 0) for world in part.batch.worlds]
    return [
        (part.fleets[f].crew.world, n)
        for f in range(len(part.fleets))
        for n in range(part.foragers)
    ]


def _bound(space: Any) -> float:
    return float(np.max(space["candidates"].high))


def _joined(observations: list[Any]) -> dict[str, np.ndarray]:
    if len(observations) == 1:
        return observations[0]
    return {
        key: np.concatenate([one[key] for one in observations])
        for key in observations[0]
    }


def _picked(values: list[Any], indices: Any) -> list[Any]:
    if indices is None:
        return values
    return [values[i] for i in ([indices] if isinstance(indices, int) else indices)]
