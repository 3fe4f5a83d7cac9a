"""Populations that live on energy: the curve, the balance, the books, the bounds."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test, parallel_api_test, seed_test

import baselines
from baselines.fleet import run_fleet
from gym_webforage import fleet_v0
from gym_webforage.world.energy import Balance, Economy, EnergyPopulation
from gym_webforage.world.fleet import Fleet
from gym_webforage.world.rules import Rules
from tests.toys import NOW, Page, web

SMALL = "synthetic-small-v0"
relevances = st.floats(0, 1).map(lambda value: round(value, 2))


def make(
    population: EnergyPopulation, maker: Any = fleet_v0.env, **options: Any
) -> Any:
    given = {"kind": "topic", "reach": "links", "founders": 6, "slots": None}
    return maker(SMALL, population=population, **{**given, **options})


# --- the curve and its balance


@settings(deadline=None)
@given(st.lists(relevances, min_size=1), st.floats(0, 1))
def test_the_balance_is_the_relevance_at_its_rank(
    values: list[float], share: float
) -> None:
    balance = Balance(share)
    for count, value in enumerate(values, 1):
        balance.add(value)
        rank = min(count, max(1, math.floor(share * count + 0.5)))
        assert balance.value == sorted(values[:count])[rank - 1]
    assert (balance.lowest, balance.highest) == (min(values), max(values))


def economy(values: np.ndarray, **options: Any) -> Economy:
    made = Economy(EnergyPopulation(**options), Rules(kind="topic", reach="links"))
    for value in values.tolist():
        made.balance.add(value)
    return made


def test_one_page_in_twenty_gains() -> None:
    values = np.random.default_rng(0).random(10_000)
    made = economy(values, cost=0.5, gain=10)
    given = np.array([made.curve(value) for value in values.tolist()])
    half = (10 - 0.5) / 2  # what a page at the border gives
    assert np.mean(given > half) == pytest.approx(0.5 / 10.5, rel=0.02)
    assert given.min() == pytest.approx(-0.5, abs=0.01)
    assert given.max() == pytest.approx(10, abs=0.01), "both plateaus are reached"
    assert abs(given.mean()) < 0.1, "gains and costs are level"


def test_printed_readings() -> None:
    values = np.linspace(0, 1, 1_001)

    def given(*printed: str) -> np.ndarray:
        made = economy(values, cost=0.5, gain=10, printed=printed)
        return np.array([made.curve(value) for value in values.tolist()])

    assert given("sign").min() > 0, "r + R: every page gains"
    assert np.mean(given("ratio") > 0) > 0.9
    assert given("slope").max() == pytest.approx(given().max(), abs=0.01)
    printed = EnergyPopulation(printed=("division",))
    assert printed.divided(3.5) == (3, 3.5 / 3)
    assert EnergyPopulation(printed=("floor",), upper=9, lower=5).starves(-1, 5) == (
        "dies"
    )
    assert EnergyPopulation(upper=9, lower=5).starves(-1, 5) == "waits"


def test_without_a_spread_the_curve_is_a_step() -> None:
    made = economy(np.zeros(5), cost=0.5, gain=10)
    assert made.curve(0.0) == -0.5 and made.curve(0.1) == 10


@given(st.floats(0, 1e4), st.floats(0.1, 10), st.sampled_from(["shared", "pair"]))
def test_division_creates_no_energy(energy: float, at: float, division: Any) -> None:
    population = EnergyPopulation(start=0, divide_at=at, division=division)
    clones, each = population.divided(energy)
    assert (clones + 1) * each == pytest.approx(energy)
    assert (clones > 0) == (energy > at)
    if division == "shared":
        assert each <= at


# --- the books of whole crawls


@st.composite
def populations(draw: st.DrawFn) -> EnergyPopulation:
    lower, spread = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    bounded = draw(st.booleans())
    return EnergyPopulation(
        model=draw(st.sampled_from(["linear", "sigmoid"])),
        cost=draw(st.sampled_from([0.0, 0.3, 1.5])),
        gain=draw(st.sampled_from([2.0, 10.0])),
        rate=draw(st.sampled_from([1.0, 8.0])),
        division=draw(st.sampled_from(["shared", "pair"])),
        upper=max(1, lower + spread) if bounded else None,
        lower=lower if bounded else None,
        most=60,
        roots=draw(st.sampled_from(["given", "visited"])),
        history=draw(st.sampled_from(["visits", "pages"])),
        printed=draw(st.sampled_from([(), ("division",), ("floor", "ratio")])),
    )


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    population=populations(),
    revisit=st.sampled_from(["free", "pays", "costs"]),
    together=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_energy_is_conserved(
    population: EnergyPopulation, revisit: Any, together: bool, seed: int
) -> None:
    env = make(population, revisit=revisit).unwrapped
    env.reset(seed=seed)
    fleet: Fleet = env.fleet
    books = fleet.economy
    assert books is not None
    random = np.random.default_rng(seed)

    def choose(number: int) -> int:
        actions = [*fleet.action_set(number).tolist(), -1]  # now and then illegal
        return actions[random.integers(len(actions))]

    for _ in range(12 if together else 80):
        if not fleet.order or fleet.stopped:
            break
        if together:
            chosen = {number: choose(number) for number in fleet.order}
            fleet.step_together(chosen, random)
        else:
            fleet.step(choose(fleet.current))
        living = sum(fleet.scores[number] for number in fleet.order)
        kept = sum(books.left.values())
        came = books.granted - books.charged - books.buried + books.created
        assert living + kept == pytest.approx(fleet.founders + came)
        assert fleet.energy == pytest.approx(living)
        assert books.energy_left == pytest.approx(kept)
        assert all(energy > 0 for energy in books.left.values())
        if "division" not in population.printed:
            assert books.created == pytest.approx(0)
    history = fleet.history
    assert len(history["time"]) == fleet.world.fetches
    if len(history["living"]):
        assert history["living"][-1] == len(fleet.order)


# --- revisits, the buffer, the cap

PAGES = {
    "home": Page(["good", "bad"], text="door"),
    "good": Page(["home"], text="ball"),
    "bad": Page(["home"], text="door"),
}


def toy(population: EnergyPopulation, **options: Any) -> Any:
    env = fleet_v0.env(
        web(PAGES),
        kind="topic",
        topic=["ball"],
        split="all",
        slots=None,
        population=population,
        **{"founders": 1, "reach": "links", **options},
    ).unwrapped
    env.reset(seed=0)
    assert env.fleet.world.start >= NOW - 20 * 86_400_000
    return env


def go(env: Any, *names: str) -> list[float]:
    """Let the current forager visit pages; return its energy after each."""
    found = []
    for name in names:
        number = env.fleet.current
        env.step(env.crew.trace.urls.find(name))
        found.append(env.fleet.scores[number])
    return found


@pytest.mark.parametrize(
    ("revisit", "again"), [("free", 0.0), ("pays", 0.25), ("costs", -0.25)]
)
def test_what_a_second_visit_gives(revisit: str, again: float) -> None:
    rule = EnergyPopulation(model="linear", rate=0.5, cost=0.25, start=1, divide_at=10)
    env = toy(rule, revisit=revisit)
    energy = go(env, "home", "good", "home", "good")
    assert energy[:3] == pytest.approx([1.0, 1.25, 1.0]), "the root was given"
    assert energy[3] - energy[2] == pytest.approx(again)


def test_roots_are_given_or_visited() -> None:
    rule = EnergyPopulation(model="linear", cost=0.25, divide_at=10)
    env = toy(rule, founders=2)
    books = env.fleet.economy
    env.step(-1)  # an illegal action costs, and does not get it to the root
    assert env.fleet.scores == pytest.approx([0.75, 1])
    assert go(env, "home", "home") == pytest.approx([1, 0.75])
    assert not books.visited and books.balance.value == 0 and not books.balance.low
    env = toy(replace(rule, roots="visited"), founders=2)
    assert go(env, "home", "home") == pytest.approx([0.75, 1]), "the first one pays"
    assert len(env.fleet.economy.balance.low) == 1


def test_the_balance_counts_visits_or_pages() -> None:
    histories: list[tuple[Any, int]] = [("visits", 4), ("pages", 2)]
    for history, count in histories:
        rule = EnergyPopulation(cost=0.1, divide_at=100, history=history)
        env = toy(rule, revisit="pays")
        go(env, "home", "good", "home", "good", "home")
        balance = env.fleet.economy.balance
        assert len(balance.low) + len(balance.high) == count


def test_pages_keep_energy_while_too_many_live() -> None:
    rule = EnergyPopulation(
        model="linear", rate=4, cost=0.1, upper=1, lower=1, divide_at=100
    )
    env = toy(rule, founders=2)
    good = env.crew.trace.urls.find("good")
    assert go(env, "home", "home") == pytest.approx([1, 1])
    assert go(env, "good") == pytest.approx([0.9])
    books = env.fleet.economy
    assert books.left == {good: pytest.approx(3.9)}
    # The page is in the other's action set, from wherever it stands.
    go(env, "bad")
    assert env.fleet.current == 0
    assert env.infos["forager_0"]["with_energy"].tolist() == [good]
    assert good in env.infos["forager_1"]["action_set"]


def test_a_starving_forager_is_sent_to_energy_or_dies() -> None:
    rule = EnergyPopulation(
        model="linear",
        rate=4,
        cost=0.4,
        upper=2,
        lower=2,
        divide_at=100,
        roots="visited",
    )
    env = toy(rule, founders=3, revisit="costs")
    good = env.crew.trace.urls.find("good")
    go(env, *["home"] * 3, *["bad"] * 3)
    assert len(env.fleet.order) == 3
    go(env, "home")  # the first of three starves and dies, the others wait
    assert env.fleet.deaths and len(env.fleet.order) == 2
    env.step(None)
    env.fleet.economy.left[good] = 2.0
    go(env, "home", "home")
    assert env.fleet.sent, "its action set is the pages with energy left"
    name = env.agent_selection
    assert env.infos[name]["action_set"].tolist() == [good]
    assert go(env, "good")[0] > 1
    assert env.fleet.sent.isdisjoint({env.crew.numbers[name]})
    assert env.infos[name]["known"].here == good


def test_a_population_that_explodes_is_stopped() -> None:
    rule = EnergyPopulation(model="linear", rate=50, cost=0.1, most=40)
    result = run_fleet(
        make(rule, revisit="pays", budget=5_000),
        baselines.load("energy_forager"),
        seed=1,
    )
    assert result.stopped is not None and "more than most=40" in result.stopped
    assert 0 < result.fetches < 5_000
    assert len(result.events["time"]) == result.fetches
    assert result.history["living"].max() <= 40
    named = run_fleet(
        make(rule, revisit="pays", budget=5_000, max_births=20),
        baselines.load("energy_forager"),
        seed=1,
    )
    assert named.stopped is not None and "max_births=20" in named.stopped


def test_the_buffer_bounds_the_population() -> None:
    free = EnergyPopulation(cost=0.3, gain=20)
    bounded = EnergyPopulation(cost=0.3, gain=20, upper=30, lower=10)
    agent = baselines.load("energy_forager")
    options: dict[str, Any] = {"founders": 20, "budget": 3_000, "revisit": "pays"}
    without = run_fleet(make(free, **options), agent, seed=2).history["living"]
    living = run_fleet(make(bounded, **options), agent, seed=2).history["living"]
    assert living.max() <= 30 + 20 and living.min() >= 10
    assert without.max() > 50


# --- environments and checkpoints

ENERGY = EnergyPopulation(cost=0.4, gain=5, upper=8, lower=3, most=60)


@pytest.mark.parametrize("slots", [16, None])
def test_pettingzoo(slots: int | None) -> None:
    options: dict[str, Any] = {"slots": slots, "max_births": 500}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Observation is not a NumPy array")
        warnings.filterwarnings("ignore", "Observation space for each agent probably")
        # One who dies sees nothing.
        warnings.filterwarnings("ignore", "Action mask numpy array is all zeros")
        api_test(make(ENERGY, **options), num_cycles=200, verbose_progress=False)
    seed_test(functools.partial(make, ENERGY, **options), num_cycles=60)
    parallel_api_test(make(ENERGY, fleet_v0.parallel_env, **options), num_cycles=100)


class Killed(Exception):
    """The run was cut off."""


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    agent = baselines.load("energy_forager")
    options: dict[str, Any] = {"budget": 2_000, "revisit": "costs"}
    whole = run_fleet(make(ENERGY, **options), agent, seed=3)
    assert whole.births and whole.deaths
    steps = 0

    def kill(*_: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == 1_200:
            raise Killed

    keep: dict[str, Any] = {"checkpoint": tmp_path, "checkpoint_every": "10m"}
    with pytest.raises(Killed):
        run_fleet(make(ENERGY, **options), agent, seed=3, on_step=kill, **keep)
    assert list(tmp_path.iterdir())
    later = run_fleet(make(ENERGY, **options), agent, seed=3, **keep)
    assert later.event_hash == whole.event_hash
    assert later.births == whole.births and later.deaths == whole.deaths
    for name, column in whole.history.items():
        np.testing.assert_array_equal(column, later.history[name], name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"upper": 3, "lower": 4}, "lower is 4 and upper 3, expected 0 <= lower"),
        ({"upper": 3}, "upper and lower: expected both or neither"),
        ({"cost": -1}, "cost is -1, expected 0 to"),
        ({"gain": 0}, "gain is 0, expected"),
        ({"rate": math.nan}, "rate is nan, expected 0 to"),
        ({"start": 2}, "start is 2, expected 0 to 1"),
        ({"model": "cubic"}, "model is 'cubic', expected sigmoid or linear"),
        ({"division": "none"}, "division is 'none', expected shared or pair"),
        ({"roots": "none"}, "roots is 'none', expected given or visited"),
        ({"history": []}, r"history is \[\], expected visits or pages"),
        ({"most": 0}, "most is 0, expected an integer from 1 on"),
        ({"printed": "sign"}, "printed is 'sign', expected a tuple of sign, ratio"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EnergyPopulation(**options)


def test_mistakes_of_fleets_are_named() -> None:
    with pytest.raises(ValueError, match="energy needs kind topic or spider"):
        fleet_v0.env(SMALL, population="energy")
    with pytest.raises(ValueError, match="only with reach='links'"):
        make(ENERGY, reach="frontier")
    with pytest.raises(ValueError, match="expected fixed, score, energy or a"):
        fleet_v0.env(SMALL, population="love")


def test_over_a_frontier_foragers_live_as_well() -> None:
    result = run_fleet(
        make(EnergyPopulation(), reach="frontier", budget=300),
        baselines.load("energy_forager"),
        seed=0,
    )
    assert result.fetches and len(result.history["living"]) == result.fetches
