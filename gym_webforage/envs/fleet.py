"""Several foragers over one world: PettingZoo in turns and in rounds, Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from gym_webforage.envs.crew import Crew, Observation
from gym_webforage.trace import Trace
from gym_webforage.world.fleet import Outcome


class FleetAECEnv(AECEnv[str, Any, Any]):
    """Foragers that work in turns on one computer, as in the news papers.

    `gym_webforage.world.fleet` states the rules; arguments are those of `NewsEnv`
    (with `kind="topic"` or `"spider"` of the others), and:

    | name            | default | meaning                                              |
    |-----------------|---------|------------------------------------------------------|
    | `kind`          | news    | `news`, `topic` or `spider`                          |
    | `founders`      | 2       | how many start                                       |
    | `population`    | fixed   | `fixed`, `score`, `energy`, a `ScorePopulation(...)` |
    |                 |         | or an `EnergyPopulation(...)`                        |
    | `slice_seconds` | 180     | how long each works in its turn                      |
    | `max_births`    | 256     | names in all, founders included; energy: 65,536      |

    A forager is selected again and again until its slice is over. `infos` holds, beside
    what single environments tell, `score`, `parent` (a name or None), `children` (born
    of the step that just ended), `births_stopped`, and `stopped`, the reason why a
    population that grew too large was stopped. With an energy population a slice is one
    visit, `score` is the energy, and `with_energy` the pages with energy left, which
    belong to the action set (but to no slot, unless a starving forager was sent there).
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo declares it so)
        "name": "webforage_fleet_v0",
        "render_modes": [],
        "is_parallelizable": False,
    }

    def __init__(self, trace: str | Trace | None = None, **kwargs: Any) -> None:
        super().__init__()
        self.crew = Crew(trace, **kwargs)
        self.fleet = self.crew.fleet
        self.possible_agents = list(self.crew.names)
        self.agents: list[str] = []
        self.render_mode = None

    @property
    def np_random(self) -> np.random.Generator:
        """The generator that reset seeds; everything random comes from it."""
        return self.crew.random

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of observations, the same for all."""
        return self.crew.observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of actions, the same for all."""
        return self.crew.action_space

    def observe(self, agent: str) -> Observation:
        """Return what a forager observes."""
        return self.crew.observation(self.crew.numbers[agent])

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Start a crawl; ``options`` may give roots, site, start and topic."""
        crew = self.crew
        crew.reset(seed, options)
        self.agents = [crew.names[number] for number in self.fleet.order]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {crew.names[n]: crew.info(n) for n in self.fleet.order}
        self._paid: str | None = None
        self.agent_selection = self.agents[0]
        self._skip_agent_selection = None

    def step(self, action: Any) -> None:
        """Let the selected forager take a step (None once it is out)."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        crew, fleet = self.crew, self.fleet
        number = crew.numbers[agent]
        chosen = crew.action(action)
        outcome = fleet.step(chosen, by_slot=crew.slots is not None)
        # Only the acting forager is paid: no other entry of the dicts changes.
        if self._paid is not None and self._paid in self.rewards:
            self.rewards[self._paid] = 0.0
        self._paid = agent
        self.rewards[agent] = outcome.step.reward
        self._cumulative_rewards[agent] = outcome.step.reward
        for name in crew.welcome(outcome.children):
            self.agents.append(name)
            self.rewards[name] = 0.0
            self._cumulative_rewards[name] = 0.0
            self.terminations[name] = False
            self.truncations[name] = False
            self.infos[name] = crew.info(crew.numbers[name])
        self.terminations[agent] = outcome.died
        self.infos[agent] = crew.info(number, outcome.children)
        if outcome.step.truncated:
            for name in self.agents:
                self.truncations[name] = True
        if fleet.current >= 0:
            self.agent_selection = crew.names[fleet.current]
            if fleet.current in fleet.sent:  # its action set is another one now
                self.infos[self.agent_selection] = crew.info(fleet.current)
        if outcome.died or outcome.step.truncated:
            self._deads_step_first()

    def events(self) -> dict[str, np.ndarray]:
        """Return the log of this crawl, which `gym_webforage.metrics` reads."""
        return self.crew.world.events()

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values.

        To be taken while no forager waits for its last, empty step.
        """
        return self.crew.snapshot()

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Put back a state that `snapshot` took."""
        self.crew.restore(snapshot)
        names = self.crew.names
        self.agents = [names[n] for n in sorted(self.fleet.order)]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {names[n]: self.crew.info(n) for n in self.fleet.order}
        self._paid = None
        self.agent_selection = names[self.fleet.current]
        self._skip_agent_selection = None


class FleetParallelEnv(ParallelEnv[str, Any, Any]):
    """Foragers that work at the same time, each on its own machine.

    Arguments as in `FleetAECEnv`; `slice_seconds` has no meaning here, since scores are
    settled after each round (energy: in the order of birth). A newborn appears in all
    dicts of its birth step.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo declares it so)
        "name": "webforage_fleet_v0",
        "render_modes": [],
    }

    def __init__(self, trace: str | Trace | None = None, **kwargs: Any) -> None:
        self.crew = Crew(trace, **kwargs)
        self.fleet = self.crew.fleet
        self.possible_agents = list(self.crew.names)
        self.agents: list[str] = []
        self.render_mode = None

    @property
    def np_random(self) -> np.random.Generator:
        """The generator that reset seeds; everything random comes from it."""
        return self.crew.random

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of observations, the same for all."""
        return self.crew.observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of actions, the same for all."""
        return self.crew.action_space

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, Any]]:
        """Start a crawl; ``options`` may give roots, site, start and topic."""
        crew = self.crew
        crew.reset(seed, options)
        self.agents = [crew.names[number] for number in self.fleet.order]
        return (
            {name: crew.observation(crew.numbers[name]) for name in self.agents},
            {name: crew.info(crew.numbers[name]) for name in self.agents},
        )

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, Any],
    ]:
        """Let all foragers take a step at once."""
        crew = self.crew
        if not self.agents:
            return {}, {}, {}, {}, {}
        missing = set(self.agents) - set(actions)
        if missing:
            raise ValueError(f"actions: none for {', '.join(sorted(missing))}")
        chosen = {
            crew.numbers[name]: crew.action(actions[name]) for name in self.agents
        }
        outcomes = self.fleet.step_together(
            chosen, crew.random, by_slot=crew.slots is not None
        )
        cut = any(outcome.step.truncated for outcome in outcomes.values())
        names = list(self.agents)
        rewards, terminated, infos = {}, {}, {}
        for name in names:
            outcome: Outcome = outcomes[crew.numbers[name]]
            rewards[name] = outcome.step.reward
            terminated[name] = outcome.died
            for child in crew.welcome(outcome.children):
                rewards[child] = 0.0
                terminated[child] = False
                infos[child] = crew.info(crew.numbers[child])
            infos[name] = crew.info(crew.numbers[name], outcome.children)
        truncated = dict.fromkeys(rewards, cut)
        observations = {name: crew.observation(crew.numbers[name]) for name in rewards}
        self.agents = [
            name for name in rewards if not (terminated[name] or truncated[name])
        ]
        return observations, rewards, terminated, truncated, infos

    def events(self) -> dict[str, np.ndarray]:
        """Return the log of this crawl, which `gym_webforage.metrics` reads."""
        return self.crew.world.events()


class FleetEnv(gym.Env[Any, Any]):
    """A fixed fleet under one learner, through plain Gymnasium.

    ## Description
    `foragers` crawlers take their steps together, as in the parallel PettingZoo
    environment, and one learner chooses for all. Their rewards are summed.

    ## Action Space
    `MultiDiscrete([slots] * foragers)`: the slot that each visits.

    ## Observation Space
    A flat `Dict` of vectors, forager after forager: `candidates`
    (`foragers * slots * d`), `action_mask` (`foragers * slots`), `context`
    (`foragers * 8`); the columns are those of `NewsEnv`. With `flat=False` they have
    shape `(foragers, slots, d)` and so on. A forager that is out (Topic and Spider)
    shows zeros, and what is chosen for it does nothing.

    ## Rewards
    The sum of the foragers' rewards; a page pays once per fleet.

    ## Starting State
    As in `NewsEnv`; all foragers begin at the roots.

    ## Episode End
    Terminated: no forager has anything left to visit. Truncated: the budget, shared by
    all, is spent.

    ## Information
    `action_mask` and `infos`, a list with each forager's info.

    ## Arguments
    As in `FleetAECEnv`, with `foragers` (4) in place of founders and population.

    ## Version History
    v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as in Gymnasium)

    def __init__(
        self,
        trace: str | Trace | None = None,
        *,
        foragers: int = 4,
        slots: int = 128,
        flat: bool = True,
        render_mode: str | None = None,
        **kwargs: Any,
    ) -> None:
        if slots is None:
            raise ValueError("slots=None works in single environments only")
        self.render_mode = render_mode
        self.crew = Crew(
            trace,
            founders=foragers,
            max_births=foragers,
            slots=slots,
            population="fixed",
            **kwargs,
        )
        self.foragers = foragers
        self.slots = slots
        self.flat = flat
        self.action_space = spaces.MultiDiscrete([slots] * foragers)
        self.observation_space = spaces.Dict(
            {
                key: spaces.Box(
                    np.min(space.low),
                    np.max(space.high),
                    self._shape(space.shape),
                    space.dtype,  # type: ignore[arg-type]
                )
                for key, space in self.crew.observation_space.items()
                if isinstance(space, spaces.Box)
            }
        )

    def _shape(self, single: tuple[int, ...]) -> tuple[int, ...]:
        whole = (self.foragers, *single)
        return (int(np.prod(whole)),) if self.flat else whole

    def _observe(self) -> tuple[Observation, dict[str, Any]]:
        crew = self.crew
        single = [crew.observation(number) for number in range(self.foragers)]
        observation = {key: np.stack([one[key] for one in single]) for key in single[0]}
        if self.flat:
            observation = {key: value.ravel() for key, value in observation.items()}
        living = set(crew.fleet.order)
        infos = [crew.info(n) if n in living else {} for n in range(self.foragers)]
        return observation, {"action_mask": observation["action_mask"], "infos": infos}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a crawl; ``options`` may give roots, site, start and topic."""
        super().reset(seed=seed)
        self.crew.random = self.np_random
        self.crew.reset(None, options)
        return self._observe()

    def step(
        self, action: Sequence[int] | np.ndarray
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Let all foragers take a step at once."""
        crew = self.crew
        if crew.episode is None:
            raise gym.error.ResetNeeded("call reset before the first step")
        chosen = np.asarray(action)
        if chosen.shape != (self.foragers,) or chosen.dtype.kind not in "iu":
            raise TypeError(f"action: expected {self.foragers} integers, got {action}")
        living = list(crew.fleet.order)
        outcomes = crew.fleet.step_together(
            {number: int(chosen[number]) for number in living}, crew.random, True
        )
        reward = sum(outcome.step.reward for outcome in outcomes.values())
        truncated = any(outcome.step.truncated for outcome in outcomes.values())
        observation, info = self._observe()
        return observation, reward, not crew.fleet.order, truncated, info

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, as booleans (the name sb3-contrib calls).

        A forager that is out is shown with all its actions legal: what is chosen for
        it does nothing, and a learner needs something to choose.
        """
        masks = []
        for number in range(self.foragers):
            slot = self.crew.world.foragers[number].slot
            masks.append(slot >= 0 if len(slot) else np.ones(self.slots, np.bool_))
        return np.concatenate(masks)

    def events(self) -> dict[str, np.ndarray]:
        """Return the log of this crawl, which `gym_webforage.metrics` reads."""
        return self.crew.world.events()
