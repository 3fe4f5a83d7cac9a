"""Runs that are logged for TensorBoard, read back."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import baselines
from baselines.fleet import run_fleet
from benchmarks.reproduce import energy, spidering
from benchmarks.reproduce.automata import Experiment
from benchmarks.reproduce.course import course
from benchmarks.reproduce.fleets import Norms
from benchmarks.reproduce.results import Settings
from benchmarks.tensorboard_log import PICTURE, SCALARS, log_series
from benchmarks.work import Work, run, write_row
from gym_webforage import fleet_v0

pytest.importorskip("torch")
# TensorBoard's own reader makes arrays in an old way.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def read(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0})
    return events.Reload()


def test_a_fleet(tmp_path: Path) -> None:
    env = fleet_v0.env(
        "synthetic-small-v0", population="score", slots=None, budget="7h", split="all"
    )
    inner: Any = env.unwrapped
    norms = Norms(lambda: inner.fleet.world.clock)
    result = run_fleet(env, baselines.load("weblog_td"), seed=1, on_step=norms)
    series = course(result, inner.crew.trace, 2, norms.rows)
    for _ in range(2):  # the second takes the first one's place
        log_series(tmp_path, series, start=result.start)
    assert len(list(tmp_path.iterdir())) == 1

    assert len(series["window_reward"]) == 3  # 3 h, 3 h and the rest
    events = read(tmp_path)
    for tag, column in SCALARS.items():
        values = series[column]
        there = np.isfinite(values)
        found = events.Scalars(tag) if there.any() else []
        assert [x.value for x in found] == pytest.approx(values[there].tolist()), tag
    found = events.Scalars("reward")
    assert sum(x.value for x in found) == pytest.approx(result.reward)
    minutes = round((result.end - result.start) / 60_000)
    assert [x.step for x in found] == [180, 360, minutes]
    assert found[0].wall_time == pytest.approx(result.start / 1000 + 3 * 3600)
    assert {x.value for x in events.Scalars("fleet/population")} >= {2}
    assert all(x.value > 0 for x in events.Scalars("fleet/weight_norm"))

    from matplotlib.image import imread

    [picture] = events.Images(PICTURE)
    pixels = imread(io.BytesIO(picture.encoded_image_string), format="png")
    assert pixels.shape == (picture.height, picture.width, 3)
    assert pixels.std() > 0.02  # something is on it


def logged(job: Work, folder: Path) -> tuple[Any, Any]:
    """Make a run and log it; return its row and the folder of the log."""
    rows, place = folder / "rows", folder / "log"
    row = run(job, rows)
    assert row["status"] == "done", row
    rows.mkdir(exist_ok=True)
    write_row(job, rows, row)
    for _ in range(2):  # the second takes the first one's place
        job.log(rows, place)
    return row, place


def has_hparams(events: Any) -> bool:
    return "_hparams_/session_start_info" in events.summary_metadata


def scalars(events: Any, tag: str) -> dict[int, float]:
    return {x.step: x.value for x in events.Scalars(tag)}


def test_a_crawl_of_the_automata_paper(tmp_path: Path) -> None:
    experiment = Experiment(Settings(True, 1))
    runs = {run.agent: run for run in experiment.runs()}
    job = replace(runs["lafc"], budget=50)
    row, place = logged(job, tmp_path)
    assert len(list(place.iterdir())) == 1
    events = read(place)
    found = scalars(events, "found")
    assert list(found) == list(range(5, 51, 5))
    assert list(found.values()) == row["result"]["curve"]
    precision = scalars(events, "precision")
    assert precision[50] == pytest.approx(row["result"]["precision"])
    assert list(scalars(events, "precision_by_crawl")) == [1, 2]
    assert scalars(events, "result/training_fetches") == {50: 50}
    assert has_hparams(events)


def test_a_population_that_lives_on_energy(tmp_path: Path) -> None:
    experiment = energy.Experiment(Settings(True, 1))
    [printed] = [x for x in energy.READINGS if x.name == "printed: r + R"]
    [job] = experiment.of(experiment.webs[0], energy.SIMPLE, printed)
    row, place = logged(replace(job, pages=900), tmp_path)
    events = read(place)
    assert row["result"]["stopped"]
    living = scalars(events, "population/living")
    assert max(living) <= row["result"]["fetches"], "nothing after it was stopped"
    assert living[1] == 200 and max(living.values()) <= row["result"]["highest"]
    assert 0 < min(scalars(events, "precision").values()) <= 1
    assert set(scalars(events, "result/stopped").values()) == {1}
    assert has_hparams(events)


def test_the_spiders_of_a_fold(tmp_path: Path) -> None:
    job = spidering.Experiment(Settings(True, 1)).runs()[0]
    row, place = logged(job, tmp_path)
    found_at = row["result"]["found_at"]
    assert len(list(place.iterdir())) == len(found_at)
    events = read(place / "Breadth-First")
    found = scalars(events, "found_share")
    [at] = found_at["Breadth-First"]
    for fetches, share in found.items():
        assert share == pytest.approx(sum(x <= fetches for x in at) / len(at))
    assert max(found) == row["result"]["urls"] and found[max(found)] == 1
    assert "result/links_to_50%" in events.Tags()["scalars"]
    assert has_hparams(events)
