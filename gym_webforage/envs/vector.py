"""Many crawls over one trace, stepped by a single kernel call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_webforage.envs.buffers import BufferPool
from gym_webforage.envs.episode import Episode, EpisodeMaker, Split, TopicGiven
from gym_webforage.envs.forage import (
    DEFAULT_TRACES,
    ForageEnv,
    NewsEnv,
    SpiderEnv,
    TopicEnv,
    make_rules,
    make_view,
    slot_space,
)
from gym_webforage.trace import Trace, load_trace
from gym_webforage.world import layout as L
from gym_webforage.world.forager import Features, Shortlist
from gym_webforage.world.observe import (
    CONTEXT_COLUMNS,
    observe,
    step_and_observe_all,
)
from gym_webforage.world.world import World, trace_addresses

Observation = dict[str, np.ndarray]


class ForageVectorEnv(VectorEnv[Observation, np.ndarray, np.ndarray]):
    """The native batch behind ``gym.make_vec``; arguments as in `ForageEnv`.

    World ``i`` behaves as a single environment that was reset with ``seed + i``. Slots
    are required. A crawl that ended is reset in the next step
    (`AutoresetMode.NEXT_STEP`, whose action is ignored), or with
    ``autoreset_mode=AutoresetMode.SAME_STEP`` in the same step, the last observation
    then standing in ``infos["final_obs"]``.
    """

    single: ClassVar[type[ForageEnv]]

    def __init__(
        self,
        num_envs: int = 1,
        trace: str | Trace | None = None,
        *,
        slots: int = 128,
        features: Features | None = None,
        shortlist: Shortlist | None = None,
        scaled: bool = False,
        flat: bool = False,
        split: Split = "train",
        topic: TopicGiven | None = None,
        site: str | None = None,
        log: bool = False,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **rules: Any,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs is {num_envs!r}, expected a positive number")
        if slots is None:
            raise ValueError("slots=None works in single environments only")
        for name in ("on_illegal", "render_mode"):
            if rules.pop(name, None) is not None:
                raise ValueError(f"{name} works in single environments only")
        mode = AutoresetMode(autoreset_mode)
        if mode == AutoresetMode.DISABLED:
            raise ValueError("autoreset_mode: expected NEXT_STEP or SAME_STEP")
        single = self.single
        self.rules = make_rules(single.kind, rules)
        view = make_view(self.rules, slots, features, shortlist, scaled)
        self.metadata = {"autoreset_mode": mode}
        self.autoreset_mode = mode
        self.num_envs = num_envs
        self.trace = load_trace(DEFAULT_TRACES[single.kind] if trace is None else trace)
        self.episodes = EpisodeMaker(self.trace, self.rules, split, topic, site)
        self._connect()
        self.worlds = [
            World(
                self.trace,
                self.rules,
                **asdict(view),
                log=log,
                addresses=(self._world_table[i], self._forager_table[i : i + 1]),
            )
            for i in range(num_envs)
        ]
        self.running: list[Episode | None] = [None] * num_envs
        self.slots = slots
        self.flat = flat
        self.single_action_space = Discrete(slots)
        self.single_observation_space = slot_space(self.worlds[0], slots, flat)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._randoms = [seeding.np_random()[0] for _ in range(num_envs)]
        self._ended = np.zeros(num_envs, np.bool_)
        self._masks = np.zeros((num_envs, slots), np.int8)

    # --- Gymnasium

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Start all crawls, or those that ``options["reset_mask"]`` picks."""
        given = dict(options or {})
        picked = given.pop("reset_mask", None)
        if picked is None:
            picked = np.ones(self.num_envs, np.bool_)
        picked = np.asarray(picked)
        if picked.shape != (self.num_envs,) or picked.dtype != np.bool_:
            raise ValueError(f"reset_mask: expected {self.num_envs} booleans")
        seeds: Sequence[int | None]
        if seed is None:
            seeds = [None] * self.num_envs
        elif isinstance(seed, int | np.integer):
            seeds = [int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
            if len(seeds) != self.num_envs:
                raise ValueError(f"seed: expected {self.num_envs} of them")
        return self.reset_each(seeds, [given] * self.num_envs, picked)

    def reset_each(
        self,
        seeds: Sequence[int | None],
        options: Sequence[dict[str, Any] | None],
        picked: np.ndarray,
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the crawls that are ``picked``, each with its own seed and options."""
        for i in np.flatnonzero(picked).tolist():
            if seeds[i] is not None:
                self._randoms[i] = seeding.np_random(seeds[i])[0]
            self._restart(i, options[i])
        if any(episode is None for episode in self.running):
            raise ResetNeeded("reset_mask leaves out a crawl that was never started")
        self._ended &= ~picked
        observation = self._new_observation()
        for i in range(self.num_envs):
            self._write(i, observation)
        return self._returned(observation)

    def step(
        self, actions: np.ndarray
    ) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one step in each crawl."""
        if any(episode is None for episode in self.running):
            raise ResetNeeded("call reset before the first step")
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise TypeError(
                f"actions: expected {self.num_envs} integers, got shape {chosen.shape} "
                f"of {chosen.dtype}"
            )
        chosen = np.ascontiguousarray(chosen, np.int64)
        answers = np.zeros(self.num_envs, np.int64)
        rewards = np.zeros(self.num_envs)
        observation = self._new_observation()
        candidates, since, masks, contexts = observation
        ended = self._ended
        active = (~ended).view(np.uint8)
        for i in np.flatnonzero(ended):  # NEXT_STEP: these begin anew now
            self._restart(int(i))
            self._write(int(i), observation)
        while step_and_observe_all(
            self._trace_address,
            self._world_table,
            self._forager_table,
            active,
            chosen,
            since,
            answers,
            rewards,
            candidates,
            masks,
            contexts,
        ):
            for i in np.flatnonzero(answers >= L.GROW_LEDGER):
                world = self.worlds[i]
                world.grow(int(answers[i]), world.foragers[0])
                answers[i] = 0
        terminated = answers & L.ENDED != 0
        truncated = answers & L.TRUNCATED != 0
        ended = terminated | truncated
        extra: dict[str, Any] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and ended.any():
            extra = self._finals(ended, candidates, masks, contexts)
            for i in np.flatnonzero(ended):
                self._restart(int(i))
                self._write(int(i), observation)
            self._ended = np.zeros(self.num_envs, np.bool_)
        else:
            self._ended = ended
        shown, infos = self._returned(observation)
        return shown, rewards, terminated, truncated, {**infos, **extra}

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal now, as booleans (envs, slots)."""
        return self._masks.astype(np.bool_)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of a candidate's columns, in order."""
        return self.worlds[0].feature_names

    # --- beyond Gymnasium

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        return {
            "worlds": [world.snapshot() for world in self.worlds],
            "episodes": [asdict(one) if one else None for one in self.running],
            "randoms": [random.bit_generator.state for random in self._randoms],
            "ended": self._ended.copy(),
        }

    def restore(
        self, snapshot: Mapping[str, Any]
    ) -> tuple[Observation, dict[str, Any]]:
        """Put back a state that `snapshot` took; return the observation there."""
        if len(snapshot["worlds"]) != self.num_envs:
            raise ValueError(
                f"the snapshot has {len(snapshot['worlds'])} crawls, this batch has "
                f"{self.num_envs}"
            )
        self._ended = np.array(snapshot["ended"], np.bool_)
        observation = self._new_observation()
        for i, world in enumerate(self.worlds):
            world.restore(snapshot["worlds"][i])
            self.running[i] = Episode.restored(snapshot["episodes"][i])
            self._randoms[i].bit_generator.state = snapshot["randoms"][i]
            self._write(i, observation)
        return self._returned(observation)

    # --- parts

    def _restart(self, i: int, options: dict[str, Any] | None = None) -> None:
        episode = self.episodes.draw(self._randoms[i], options)
        self.running[i] = episode
        self.worlds[i].reset(
            start=episode.start,
            roots=episode.roots,
            topic=episode.topic,
            site=episode.site,
        )

    def _new_observation(self) -> tuple[np.ndarray, ...]:
        if self._pool is None:
            shape = (self.num_envs, self.slots, self.worlds[0].columns)
            self._pool = BufferPool(shape, self.num_envs)
        candidates, since = self._pool.take()
        masks = np.empty((self.num_envs, self.slots), np.int8)
        contexts = np.empty((self.num_envs, CONTEXT_COLUMNS), np.float32)
        return candidates, since, masks, contexts

    def _write(self, i: int, observation: tuple[np.ndarray, ...]) -> None:
        candidates, since, masks, contexts = observation
        observe(
            self._trace_address,
            self._world_table[i],
            self._forager_table[i],
            since[i : i + 1],
            candidates[i],
            masks[i],
            contexts[i],
        )

    def _returned(
        self, observation: tuple[np.ndarray, ...]
    ) -> tuple[Observation, dict[str, Any]]:
        candidates, _, masks, contexts = observation
        self._masks = masks
        if self.flat:
            candidates = candidates.reshape(self.num_envs, -1)
        shown = {"candidates": candidates, "action_mask": masks, "context": contexts}
        everyone = np.ones(self.num_envs, np.bool_)
        return shown, {"action_mask": masks, "_action_mask": everyone}

    def _finals(
        self,
        ended: np.ndarray,
        candidates: np.ndarray,
        masks: np.ndarray,
        contexts: np.ndarray,
    ) -> dict[str, Any]:
        last = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(ended):
            rows = candidates[i].copy()
            last[i] = {
                "candidates": rows.reshape(-1) if self.flat else rows,
                "action_mask": masks[i].copy(),
                "context": contexts[i].copy(),
            }
        infos = {"action_mask": masks.copy(), "_action_mask": ended.copy()}
        return {
            "final_obs": last,
            "_final_obs": ended.copy(),
            "final_info": infos,
            "_final_info": ended.copy(),
        }

    def __getstate__(self) -> dict[str, Any]:
        """Leave out buffers and addresses, which a copy makes for itself."""
        apart = ("_pool", "_world_table", "_forager_table", "_trace_address")
        return {k: v for k, v in self.__dict__.items() if k not in apart}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Bind the worlds to tables of the copy's own."""
        self.__dict__.update(state)
        self._connect()
        for i, world in enumerate(self.worlds):
            world.address = self._world_table[i]
            world.bind()
            world.foragers[0].address = self._forager_table[i]
            world.foragers[0].bind()

    def _connect(self) -> None:
        """Make the tables of addresses through which one call steps all worlds."""
        self._trace_address = trace_addresses(self.trace)
        self._world_table = np.zeros((self.num_envs, L.WORLD_FIELDS), np.int64)
        self._forager_table = np.zeros((self.num_envs, L.FORAGER_FIELDS), np.int64)
        self._pool: BufferPool | None = None


class NewsVectorEnv(ForageVectorEnv):
    """A batch of `NewsEnv`."""

    single = NewsEnv


class TopicVectorEnv(ForageVectorEnv):
    """A batch of `TopicEnv`."""

    single = TopicEnv


class SpiderVectorEnv(ForageVectorEnv):
    """A batch of `SpiderEnv`."""

    single = SpiderEnv
