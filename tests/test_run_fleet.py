"""The loop that runs a fleet: order, births, equal runs, and going on after a kill."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import baselines
from baselines import _checkpoint, linear_td, random_walk, weblog, weblog_td
from baselines.agent import Agent, Transition, world_of
from baselines.fleet import CHECKPOINT, FleetResult, hash_events, run_fleet
from baselines.linear_td import LinearTD
from baselines.weblog import Weblog
from baselines.weblog_td import WeblogTD
from gym_webforage import fleet_v0
from gym_webforage.envs import NewsEnv
from gym_webforage.metrics import NOVEL, SENT
from gym_webforage.world.population import ScorePopulation

# Small scores, so that a day sees births and deaths.
POPULATION = ScorePopulation(start=3, divide_at=5, per_sent=-0.6, most=6)
FAMILIES = {
    "random_walk": random_walk,
    "weblog": weblog,
    "linear_td": linear_td,
    "weblog_td": weblog_td,
}


def make_env(**options: Any) -> Any:
    options = {
        "founders": 2,
        "population": POPULATION,
        "slots": None,
        "split": "all",
        "budget": "1d",
        **options,
    }
    return fleet_v0.env("synthetic-small-v0", **options)


def run(makers: Any = weblog, *, seed: int = 0, **options: Any) -> FleetResult:
    return run_fleet(make_env(), makers, seed=seed, **options)


# --- a run


def test_the_loops_are_no_baselines() -> None:
    assert not {"agent", "fleet"} & {*baselines.names()}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_run_adds_up(name: str) -> None:
    result = run(FAMILIES[name])
    events, history = result.events, result.history
    assert result.births and result.deaths
    assert result.fetches == len(events["url"]) == result.summary["fetches"]
    assert result.steps == result.summary["steps"]
    assert result.reward == events["value"].sum() == result.summary["reward"]
    assert result.end - result.start >= 86_400_000
    assert result.cpu_seconds > 0
    born = [child for _, _, child in result.births]
    assert born == list(range(2, 2 + len(born)))
    dead = {number for _, number in result.deaths}
    living = {f"forager_{n}" for n in {0, 1, *born} - dead}
    assert living == {*result.agents}
    assert {*np.unique(events["forager"]).tolist()} <= {0, 1, *born}
    assert np.all(np.diff(history["time"]) >= 0)
    # Nothing but sending changes a score between a birth and the next.
    first = history["score"][history["forager"] == 0][0]
    until = events["time"] <= history["time"][0]
    sent = np.count_nonzero(events["flags"][until] & SENT)
    novel = np.count_nonzero(events["flags"][until] & NOVEL)
    assert first == pytest.approx(3 - 0.6 * sent + novel)


@pytest.mark.parametrize("name", FAMILIES)
def test_equal_seeds_make_equal_runs(name: str) -> None:
    first, second, other = (run(FAMILIES[name], seed=seed) for seed in (1, 1, 2))
    assert first.event_hash == second.event_hash == hash_events(second.events)
    assert (first.births, first.deaths) == (second.births, second.deaths)
    assert first.event_hash != other.event_hash


def test_the_hash_sees_every_column() -> None:
    events = {"time": np.arange(3), "url": np.arange(3, dtype=np.int32)}
    seen = {hash_events(events)}
    for name, column in events.items():
        changed = column.copy()
        changed[1] += 1
        seen.add(hash_events({**events, name: changed}))
    assert len(seen) == 3


def test_founders_take_the_makers_in_turn() -> None:
    env = make_env(founders=5, population="fixed", budget="1h")
    result = run_fleet(env, [weblog_td, weblog.make], seed=0)
    kinds = [type(result.agents[f"forager_{i}"]) for i in range(5)]
    assert kinds == [WeblogTD, Weblog, WeblogTD, Weblog, WeblogTD]
    weights = [tuple(agent.weights) for agent in result.agents.values()]  # type: ignore[attr-defined]
    assert len(set(weights)) == 5  # each has a seed of its own


def test_children_are_of_their_parents_kind() -> None:
    kinds: dict[str, type[Agent]] = {}

    def see(name: str, agent: Agent, step: Transition) -> None:
        kinds[name] = type(agent)

    result = run([weblog, linear_td], on_step=see)
    assert {Weblog, LinearTD} == {*kinds.values()}
    assert result.births
    for _, parent, child in result.births:
        if f"forager_{child}" in kinds:  # else it had no turn before the end
            assert kinds[f"forager_{child}"] is kinds[f"forager_{parent}"]


def test_a_birth_divides_the_weblog() -> None:
    seen = []

    class Watched(Weblog):
        def divide(self, rng: np.random.Generator) -> Any:
            before = dict(self.weblog)
            child = super().divide(rng)
            assert {**self.weblog, **child.weblog} == before
            seen.append((len(before), len(child.weblog), len(self.weblog)))
            return child

    def make(env: Any, seed: int) -> Agent:
        return Watched(states=world_of(env).trace.states)

    result = run(make)
    assert len(seen) == len(result.births) > 0
    assert any(both > 10 for both, _, _ in seen)
    for both, child, kept in seen:
        if both > 1:  # a lone URL is shared
            assert (child, kept) == (both // 2, both - both // 2)


def test_on_step_sees_what_was_learned_from() -> None:
    steps: list[tuple[str, Transition]] = []

    class Counting(random_walk.RandomWalk):
        learned = 0

        def learn(self, transition: Transition) -> None:
            Counting.learned += 1
            assert transition.info["url"] == transition.action

        def divide(self, rng: np.random.Generator) -> Any:
            child = Counting()
            child.random = rng
            return child

    result = run(
        lambda env, seed: Counting(),
        on_step=lambda name, agent, step: steps.append((name, step)),
    )
    assert Counting.learned == len(steps) == result.steps - len(result.deaths)
    assert steps[-1][1].truncated
    # Within a slice an observation is the end of the step before.
    pairs = itertools.pairwise([step for _, step in steps])
    same = [one.next_observation is two.observation for one, two in pairs]
    assert 0.5 < np.mean(same) < 1


@pytest.mark.parametrize("kind", ["topic", "spider"])
def test_fleets_of_other_kinds(kind: str) -> None:
    trace = "synthetic-small-sites-v0" if kind == "spider" else "synthetic-small-v0"
    env = fleet_v0.env(trace, kind=kind, founders=3, slots=None, budget=200)
    result = run_fleet(env, [weblog_td, linear_td, random_walk], seed=0)
    assert result.fetches == 200
    assert result.summary["illegal"] == 0


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="makers is empty"):
        run([])
    with pytest.raises(TypeError, match="no fleet in turns"):
        run_fleet(NewsEnv("synthetic-small-v0"), weblog, seed=0)
    with pytest.raises(ValueError, match="slots is 16, expected None for Weblog"):
        run_fleet(make_env(slots=16), weblog, seed=0)

    class Plain(Agent):
        def act(self, observation: Any, info: Any) -> int:
            return int(info["action_set"][0])

    with pytest.raises(TypeError, match="Plain does not divide"):
        run(lambda env, seed: Plain())


# --- checkpoints


def test_a_tree_comes_back_from_its_file(tmp_path: Path) -> None:
    tree = {
        "plain": [1, 2.5, "text", None, True, 2**100, float("inf")],
        "deep": [{"array": np.arange(6, dtype=np.int16).reshape(2, 3)}, {}, []],
        "empty": np.zeros((0, 4), np.float32),
        "number": np.float64(0.1),
    }
    file = tmp_path / "new" / "tree.npz"
    _checkpoint.write(file, tree)
    back = _checkpoint.read(file)
    assert back["plain"] == tree["plain"]
    assert back["number"] == 0.1
    array = back["deep"][0]["array"]
    assert array.dtype == np.int16 and array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert back["deep"][1:] == [{}, []]
    assert back["empty"].shape == (0, 4) and back["empty"].dtype == np.float32
    assert [other.name for other in file.parent.iterdir()] == ["tree.npz"]
    for bad in ({1: 2}, {"a": object()}, [np.array([None])]):
        with pytest.raises(TypeError):
            _checkpoint.write(file, bad)
    assert _checkpoint.read(file)["number"] == 0.1  # the old one stands


class Killed(Exception):
    pass


@pytest.mark.parametrize("name", FAMILIES)
def test_an_interrupted_run_goes_on(name: str, tmp_path: Path) -> None:
    whole = run(FAMILIES[name], seed=3)
    options = {"seed": 3, "checkpoint": tmp_path, "checkpoint_every": "3h"}
    stops = [whole.steps // 3, whole.steps // 2]

    def stop(*step: Any) -> None:
        stops[0] -= 1
        if stops[0] < 0:
            raise Killed

    for _ in range(2):
        with pytest.raises(Killed):
            run(FAMILIES[name], on_step=stop, **options)
        assert (tmp_path / CHECKPOINT).exists()
        stops.pop(0)
    last = run(FAMILIES[name], **options)
    assert last.event_hash == whole.event_hash
    assert (last.births, last.deaths) == (whole.births, whole.deaths)
    assert (last.reward, last.steps) == (whole.reward, whole.steps)
    assert last.summary == whole.summary
    for column, values in whole.history.items():
        assert np.array_equal(values, last.history[column])
    for agent, other in zip(whole.agents.values(), last.agents.values(), strict=True):
        one, two = agent.save(), other.save()
        assert one.keys() == two.keys()
        assert all(np.array_equal(one[key], two[key]) for key in one)
    assert not any(tmp_path.iterdir())  # nothing is left of it


def test_an_interrupted_mixed_fleet_goes_on(tmp_path: Path) -> None:
    population = ScorePopulation(start=3, divide_at=5, most=8)
    makers = [linear_td, weblog, random_walk]

    def start(**options: Any) -> FleetResult:
        env = make_env(founders=3, population=population)
        return run_fleet(env, makers, seed=0, **options)

    def stop(name: str, agent: Agent, step: Transition) -> None:
        if step.info["clock"] > whole.end - 7_200_000:
            raise Killed

    whole = start()
    # All kinds have children, which were alive when the last checkpoint was made.
    children = [whole.agents[f"forager_{child}"] for _, _, child in whole.births]
    assert {type(child).__name__ for child in children} == {
        "LinearTD",
        "Weblog",
        "RandomWalk",
    }
    assert whole.births[-1][0] < whole.end - 7_200_000
    options: Any = {"checkpoint": tmp_path, "checkpoint_every": "1h"}
    with pytest.raises(Killed):
        start(on_step=stop, **options)
    assert start(**options).event_hash == whole.event_hash


def test_a_checkpoint_belongs_to_its_run(tmp_path: Path) -> None:
    def stop(*step: Any) -> None:
        if (tmp_path / CHECKPOINT).exists():
            raise Killed

    options: Any = {"checkpoint": tmp_path, "checkpoint_every": "1h"}
    with pytest.raises(Killed):
        run(weblog, on_step=stop, **options)
    with pytest.raises(ValueError, match=r"another run \(seed differ\)"):
        run(weblog, seed=1, **options)
    with pytest.raises(ValueError, match=r"another run \(makers differ\)"):
        run(linear_td, **options)
    with pytest.raises(ValueError, match=r"another run \(rules differ\)"):
        run_fleet(make_env(judge="evolution"), weblog, seed=0, **options)
    anew = run(weblog, seed=1, resume=False, **options)
    assert anew.event_hash == run(weblog, seed=1).event_hash


def test_agents_that_cannot_be_saved_say_so(tmp_path: Path) -> None:
    class Plain(Agent):
        def act(self, observation: Any, info: Any) -> int:
            return int(info["action_set"][0])

    env = make_env(population="fixed")
    with pytest.raises(TypeError, match="Plain cannot be saved"):
        run_fleet(
            env,
            lambda env, seed: Plain(),
            seed=0,
            checkpoint=tmp_path,
            checkpoint_every="1h",
        )


SCRIPT = """
import json, sys
from baselines import linear_td, weblog
from baselines.fleet import run_fleet
from tests.test_run_fleet import make_env

result = run_fleet(
    make_env(budget="4d"), [weblog, linear_td], seed=7,
    checkpoint=sys.argv[1], checkpoint_every="2h",
)
print(json.dumps([result.event_hash, len(result.births), len(result.deaths)]))
"""


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    whole = run_fleet(make_env(budget="4d"), [weblog, linear_td], seed=7)
    folder = Path(__file__).parent.parent
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    file = tmp_path / CHECKPOINT
    killed_at: list[int] = []
    while True:
        # Let it write two checkpoints, or more, and kill it, up to three times.
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, env={**os.environ}
        )
        seen: set[int] = {file.stat().st_ino} if file.exists() else set()
        before = len(seen)
        while process.poll() is None and len(killed_at) < 3:
            try:
                seen.add(file.stat().st_ino * 10**12 + file.stat().st_mtime_ns)
            except FileNotFoundError:
                pass
            if len(seen) > before + 2:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.001)
        output = process.communicate()[0]
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        killed_at.append(_checkpoint.read(file)["steps"])
    assert len(killed_at) >= 1
    assert killed_at == sorted(killed_at) and 0 < killed_at[-1] < whole.steps
    assert json.loads(output) == [
        whole.event_hash,
        len(whole.births),
        len(whole.deaths),
    ]
    assert not any(tmp_path.iterdir())
