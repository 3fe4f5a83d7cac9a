"""Training: exact resuming after a kill, equal seeds, held-out tasks, TensorBoard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baselines._training_tasks import (
    TrainingEpisodes,
    sources,
    training_trace,
    validation_tasks,
)
from baselines._weights import Weights
from baselines.train import main
from gym_webforage.trace import load_trace
from gym_webforage.world import Rules

pytest.importorskip("torch")

TINY = (
    "--task spider --trace synthetic-small-sites-v0 --budget 20 --slots 8 "
    "--num-envs 4 --validation 1 --validate-every 96 --checkpoint-every 0 "
    "--no-tensorboard"
).split()


def train(out: Path, method: str, *more: str) -> Weights:
    assert main([method, *TINY, *more, "--out", str(out)]) == 0
    return Weights.load(out / "weights")


def assert_equal(a: Weights, b: Weights) -> None:
    assert a.arrays.keys() == b.arrays.keys()
    for name, value in a.arrays.items():
        np.testing.assert_array_equal(value, b.arrays[name], err_msg=name)


METHODS: dict[str, list[str]] = {
    "masked_ppo": "--steps 288 --residual --set rollout=8 batch_size=16".split(),
    "masked_dqn": "--steps 288 --set rollout=4 updates=2 batch_size=8".split(),
    "cloning": "--steps 288 --set rollout=8 batch_size=16".split(),
    "boosted_trees": "--steps 288 --set rollout=24 trees=5".split(),
    "prior_bandit": "--steps 288 --set crawls=1".split(),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_stopped_run_ends_as_one_that_was_not(method, tmp_path, monkeypatch):
    whole = train(tmp_path / "whole", method, *METHODS[method])
    from baselines import _training

    rounds = 0
    checkpoint = _training._checkpoint.write

    def stop_after_two(file: Path, tree: Any) -> None:
        nonlocal rounds
        checkpoint(file, tree)
        rounds += 1
        if rounds == 2:
            raise ZeroDivisionError  # as good as a power cut: nothing is tidied up

    monkeypatch.setattr(_training._checkpoint, "write", stop_after_two)
    with pytest.raises(ZeroDivisionError):
        train(tmp_path / "broken", method, *METHODS[method])
    assert (tmp_path / "broken" / "checkpoint.npz").exists()
    monkeypatch.setattr(_training._checkpoint, "write", checkpoint)
    resumed = train(tmp_path / "broken", method, *METHODS[method])
    assert_equal(whole, resumed)
    assert whole.card == resumed.card
    assert not (tmp_path / "broken" / "checkpoint.npz").exists()


@pytest.mark.slow
def test_kill_minus_nine_in_the_middle(tmp_path):
    more = "--steps 1920 --residual --set rollout=8 batch_size=16".split()
    whole = train(tmp_path / "whole", "masked_ppo", *more)
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "baselines.train", "masked_ppo", *TINY, *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    kills = 0
    while True:
        run = subprocess.Popen(
            [*command, "--out", str(out)], env=environment, stderr=subprocess.DEVNULL
        )
        file = out / "checkpoint.npz"
        before = file.stat().st_mtime_ns if file.exists() else 0
        while run.poll() is None and kills < 2:
            time.sleep(0.005)
            if file.exists() and file.stat().st_mtime_ns != before:
                time.sleep(0.02 * (kills + 1))  # somewhere in the next rounds
                run.send_signal(signal.SIGKILL)
                run.wait()
                kills += run.returncode == -signal.SIGKILL
        if run.wait() == 0:
            break
    assert kills >= 1
    assert_equal(whole, Weights.load(out / "weights"))


def test_equal_seeds_give_equal_weights(tmp_path):
    more = METHODS["masked_ppo"]
    first = train(tmp_path / "a", "masked_ppo", *more)
    assert_equal(first, train(tmp_path / "b", "masked_ppo", *more))
    other = train(tmp_path / "c", "masked_ppo", *more, "--seed", "1")
    assert any(
        (value != other.arrays[name]).any() for name, value in first.arrays.items()
    )


def test_a_fleet_trains_one_policy_and_resumes(tmp_path, monkeypatch):
    from baselines._training_envs import FleetBatch, make_training_batch

    found = sources(["spider"], ["synthetic-small-sites-v0"], 30, {})
    batch = make_training_batch(found, 4, slots=8, foragers=2)
    assert isinstance(batch.parts[0], FleetBatch) and batch.num_envs == 4
    batch.seed(3)
    seen = batch.reset()
    random = np.random.default_rng(0)

    def step(seen: Any) -> Any:
        legal = random.random(seen["action_mask"].shape) * seen["action_mask"]
        return batch.step(legal.argmax(1))

    ends = 0
    for _ in range(40):
        seen, _, dones, _ = step(seen)
        ends += dones.sum()
        assert seen["action_mask"].any(axis=1).all()
    assert ends
    snapshot, state = batch.snapshot(), random.bit_generator.state
    expected = step(seen)
    random.bit_generator.state = state
    again = step(batch.restore(snapshot))
    for key, value in expected[0].items():
        np.testing.assert_array_equal(value, again[0][key])  # type: ignore[index]
    np.testing.assert_array_equal(expected[1], again[1])
    weights = train(
        tmp_path, "masked_ppo", "--foragers", "2", "--steps", "64", "--set",
        "rollout=8", "batch_size=16",
    )  # fmt: skip
    assert weights.card["training_fetches"] >= 64


def test_tensorboard_gets_what_was_promised(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "run"
    news = (
        "masked_ppo --task news --trace synthetic-small-v0 --budget 1h --slots 8 "
        "--num-envs 4 --validation 1 --steps 64 --set rollout=8 batch_size=16 --out"
    ).split()
    assert main([*news, str(out)]) == 0
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    tags = events.Tags()
    for tag in (
        "train/policy_loss",
        "train/value_loss",
        "train/entropy",
        "validation/score",
        "validation/z_sum",
        "validation/freshness",
        "harvest/found_at_50_percent",
        "time/steps_per_second",
        "hparam/validation_score",
    ):
        assert tag in tags["scalars"], tag
    assert {"harvest/curves", "crawl"} <= {tag.split("/0")[0] for tag in tags["images"]}
    content = events.PluginTagToContent("hparams")
    assert "_hparams_/experiment" in content


# --- tasks


def test_validation_is_never_trained_on():
    trace = load_trace("synthetic-small-v0")
    topics = TrainingEpisodes(trace, Rules(kind="topic"))
    whole = TrainingEpisodes(trace, Rules(kind="topic"), held_out=False)
    assert topics.held_topics
    assert not {*topics.topics} & {*topics.held_topics}
    assert {*topics.topics, *topics.held_topics} == {*whole.topics}
    news = TrainingEpisodes(trace, Rules(kind="news", budget="6h"))
    random = np.random.default_rng(0)
    border = trace.begin + (trace.end - trace.begin) * 2 // 3
    for _ in range(50):
        assert news.draw(random).start + 6 * 3_600_000 <= news.held_from
    for options in news.validation(3):
        assert news.held_from <= options["start"] <= border - 6 * 3_600_000
    sites = TrainingEpisodes(
        load_trace("synthetic-small-sites-v0"), Rules(kind="spider")
    )
    assert sites.held_sites and not {*sites.sites} & {*sites.held_sites}


def test_sources_pass_over_what_tests_would_see():
    # One site only, which serves as test as well: no Spider, but topics.
    found = sources(["topic", "spider"], ["python-docs-v0"], 50, {})
    assert [source.kind for source in found] == ["topic"]
    with pytest.raises(ValueError, match="nothing to train on"):
        sources(["spider"], ["python-docs-v0"], 50, {})
    assert len(validation_tasks(found, 3)) == 3


def test_a_trace_made_for_training():
    trace = training_trace("synthetic:urls=200,seed=9,text=false")
    assert len(trace.urls) == 200
    assert training_trace("synthetic:urls=200,seed=9,text=false").digest == trace.digest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("masked_ppo --task news topic", "news has weights of its own"),
        ("masked_dqn --residual", "DQN learns all of them"),
        ("masked_ppo --set ratee=1", "no setting 'ratee'; it has: rollout, epochs"),
        ("prior_bandit --set rate=1", "it has: crawls, ridge, doubt"),
        ("masked_ppo --set seed=1", "no setting 'seed'"),
        ("masked_ppo --set rate", "expected key=value"),
        ("masked_ppo --trace nowhere-v0", "There is no trace"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*arguments.split(), "--steps", "1", "--num-envs", "1"])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_a_checkpoint_of_another_run_is_refused(tmp_path, monkeypatch, capsys):
    from baselines import _training

    write = _training._checkpoint.write

    def stop(file: Path, tree: Any) -> None:
        write(file, tree)
        raise ZeroDivisionError

    monkeypatch.setattr(_training._checkpoint, "write", stop)
    with pytest.raises(ZeroDivisionError):
        train(tmp_path, "cloning", *METHODS["cloning"])
    with pytest.raises(SystemExit):
        train(tmp_path, "cloning", *METHODS["cloning"], "--seed", "5")
    assert "seed differ" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--rounds", "--slots", "--columns", "--num-envs"])
def test_the_speed_of_nothing_is_not_measured(option, capsys):
    from benchmarks.training import main

    with pytest.raises(SystemExit) as stop:
        main([option, "0"])
    assert stop.value.code == 2
    assert "'0' is not a positive number" in capsys.readouterr().err


def test_the_speed_of_training_is_measured(capsys):
    from benchmarks.training import main

    assert main(["--rounds", "1", "--num-envs", "2", "--slots", "8"]) == 0
    shown = capsys.readouterr().out
    for cell in ("topic, wide", "news", " 64 ", " 21 ", " 12 ", "%"):
        assert cell in shown
