"""Generalisation: nothing tested is trained on, and the intervals are right."""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.generalisation import __main__ as command
from benchmarks.generalisation import methods
from benchmarks.generalisation.results import outcome
from benchmarks.generalisation.statistics import (
    LOST,
    TIED,
    WON,
    Scores,
    interval,
    scaled,
    verdict,
)
from benchmarks.generalisation.studies import (
    Crawl,
    Fold,
    Ground,
    Size,
    Study,
    make_studies,
    parted_labels,
    recording_studies,
)
from benchmarks.generalisation.trials import Trial
from benchmarks.reproduce import verdicts
from gym_webforage.world.rules import parse_budget

TINY = Size(tasks=4, fetches=25, few_fetches=50, time="2h", small=True)
SHIPPED = ["topics", "sites", "docs", "news"]
SITES = "synthetic-small-sites-v0"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("OMP", "MKL", "OPENBLAS"):  # which the command sets
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")


@cache
def every_study() -> dict[str, Study]:
    found = make_studies([*SHIPPED, "recordings"], [SITES], TINY)
    return {study.id: study for study in found}


STUDIES = [*SHIPPED, f"{SITES}/sites", f"{SITES}/topics", f"{SITES}/news"]


def test_all_studies_are_looked_at() -> None:
    assert list(every_study()) == STUDIES


# --- no leak


@pytest.mark.parametrize("name", STUDIES)
def test_nothing_is_both_trained_on_and_tested(name: str) -> None:
    study = every_study()[name]
    for fold in study.folds:
        assert fold.train and fold.test and fold.study == study.id
        shared = {what(crawl) for crawl in fold.train} & set(map(what, fold.test))
        assert not shared, fold.name
        if study.kind == "news":
            budget = parse_budget(fold.test[0].ground.budget)[0]
            last = max(int(crawl.options["start"]) for crawl in fold.train) + budget
            starts = sorted(int(crawl.options["start"]) for crawl in fold.test)
            assert last <= starts[0]
            assert all(b - a >= budget for a, b in pairwise(starts))
    tested = [what(crawl) for fold in study.folds for crawl in fold.test]
    assert len(set(tested)) == len(tested)  # a task counts once in a study


def what(crawl: Crawl) -> tuple[object, ...]:
    return crawl.ground.trace, crawl.given


def test_every_site_is_left_out_once() -> None:
    (study,) = make_studies(["sites"], [], Size(tasks=9, small=True))
    assert len(study.folds) == 3
    tested = [crawl.options["site"] for fold in study.folds for crawl in fold.test]
    assert sorted(tested) == [f"news-{i}.example" for i in range(1, 7)]
    for fold in study.folds:
        both = [crawl.options["site"] for crawl in (*fold.train, *fold.test)]
        assert sorted(both) == sorted(tested)


@pytest.mark.parametrize("name", STUDIES)
def test_training_draws_nothing_but_training_crawls(name: str) -> None:
    study = every_study()[name]
    training = pytest.importorskip("benchmarks.generalisation.training")
    fold = study.folds[0]
    random = np.random.default_rng(0)
    for source in training.sources(fold.train):
        episodes = source.episodes()
        held = [tuple(given.items()) for given in episodes.validation(100)]
        allowed = {crawl.given for crawl in fold.train} - set(held)
        drawn = set()
        for _ in range(300):
            episode = episodes.draw(random)
            drawn.add(
                {
                    "topic": ("topic", episode.topic and episode.topic.name),
                    "site": ("site", source.trace.sites[episode.site]),
                    "start": ("start", episode.start),
                }[fold.train[0].given[0][0]]
            )
        assert held and {(one,) for one in drawn} <= allowed
        assert len(drawn) > 1 or len(allowed) == 1
        assert not {(one,) for one in drawn} & {crawl.given for crawl in fold.test}


def test_naive_bayes_learns_from_the_training_sites_alone(tmp_path: Path) -> None:
    from baselines._naive_bayes import Model

    (study,) = make_studies(["sites"], [], TINY)
    for place, fold in enumerate(study.folds):
        methods.prepare("naive_bayes_q", fold, 0, 1, tmp_path / str(place))
        model = Model.load(tmp_path / str(place) / "model.npz")
        learned = {site for _, site in model.trained_on}
        assert learned == {crawl.options["site"] for crawl in fold.train}


def test_subjects_are_parted_whole() -> None:
    labels = ["subject.Art.Music", "subject.Art.Film", "subject.Sea", "subject.War.Old"]
    train, test = parted_labels(labels)
    assert train == ["subject.Art.Film", "subject.Art.Music", "subject.War.Old"]
    assert test == ["subject.Sea"]
    # Nothing but a name: each is a subject of its own.
    assert parted_labels(["d", "a.b", "c", "b"]) == (["a.b", "c"], ["b", "d"])
    # One subject only.
    assert parted_labels(["x.a", "x.b"]) == (["x.a"], ["x.b"])
    assert parted_labels(["x.a.k", "x.a.l"]) == (["x.a.k"], ["x.a.l"])


def test_recordings_get_the_studies_that_they_are_fit_for() -> None:
    ids = [study.id for study in recording_studies(SITES, TINY)]
    assert ids == [f"{SITES}/sites", f"{SITES}/topics", f"{SITES}/news"]
    assert [s.id for s in recording_studies("python-docs-v0", TINY)] == [
        "python-docs-v0/topics"
    ]
    with pytest.raises(ValueError, match="sqlalchemy-docs-v0 suits no study"):
        recording_studies("sqlalchemy-docs-v0", TINY)


# --- intervals by hand


def test_one_seed_is_the_paired_interval_over_tasks() -> None:
    first, second = [0.5, 0.7, 0.2, 0.9], [0.4, 0.3, 0.3, 0.5]
    gap = Scores((np.array([first]).T,)).minus(Scores((np.array([second]).T,)))
    assert ends(interval(gap)) == pytest.approx(ends(verdicts.paired(first, second)))


def ends(found: verdicts.Interval) -> tuple[float, ...]:
    return found.mean, found.low, found.high


def test_training_seeds_widen_it_by_what_models_differ() -> None:
    tasks, models = np.array([0.1, 0.3, 0.8]), np.array([-0.2, 0.0, 0.2])
    found = interval(Scores((tasks[:, None] + models,)))
    parts = tasks.var(ddof=1) / 3, models.var(ddof=1) / 3  # no noise beside them
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 2)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts))
    assert found.mean == pytest.approx(0.4)
    assert found.high - found.mean == pytest.approx(half)
    assert found.mean - found.low == pytest.approx(half)
    # Two folds, each with models of its own: half of their variance is left.
    twice = interval(Scores((tasks[:, None] + models, tasks[:, None] + models)))
    means = np.tile(tasks, 2)
    parts = means.var(ddof=1) / 6, models.var(ddof=1) / 3 / 2
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 5 + parts[1] ** 2 / 4)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts))
    assert twice.high - twice.mean == pytest.approx(half)


def test_a_task_a_fold_has_its_models_spread_already() -> None:
    folds = [np.array([[0.1, 0.3]]), np.array([[0.6, 0.8]]), np.array([[0.4, 0.2]])]
    found = interval(Scores(tuple(folds)))
    assert ends(found) == pytest.approx(ends(verdicts.mean([0.2, 0.7, 0.3])))


def test_intervals_cover_what_they_should() -> None:
    random = np.random.default_rng(7)
    hits = narrow = 0
    for _ in range(600):
        tasks, models = random.normal(0, 1, (8, 1)), random.normal(0, 0.7, 3)
        found = interval(Scores((tasks + models + random.normal(0, 0.5, (8, 3)),)))
        hits += found.low <= 0 <= found.high
        alone = verdicts.mean((tasks + models).mean(axis=1))
        narrow += alone.low <= 0 <= alone.high
    assert 0.92 <= hits / 600 <= 0.99
    assert narrow / 600 < 0.9  # without the models' share it would claim too much


def test_few_tasks_say_nothing_or_little() -> None:
    one = interval(Scores((np.array([[0.5, 0.7]]),)))
    assert one.mean == pytest.approx(0.6) and math.isnan(one.low)
    assert verdict(one) not in (WON, LOST, TIED)
    none = interval(Scores((np.array([[np.nan]]),)))
    assert math.isnan(none.mean)
    same = interval(Scores((np.array([[0.5], [0.5]]),)))
    assert (same.low, same.high) == (0.5, 0.5) and verdict(same) == WON


def test_the_scale_goes_from_chance_to_the_oracle_for_each_task() -> None:
    low, high = np.array([[2.0, 4.0], [5.0, 5.0]]), np.array([[13.0], [5.0]])
    found = scaled(np.array([[8.0, 3.0], [5.0, 6.0]]), low, high)
    assert found[0] == pytest.approx([0.5, 0.0])
    assert np.isnan(found[1]).all()  # nothing to be gained there


# --- from rows to what is said


def sample(values: dict[str, list[list[float]]]) -> tuple[Study, list[Trial], dict]:
    """Return a study of one fold with rows: for each method, seeds of tasks."""
    ground = Ground("topic", "synthetic-small-v0", 10)
    crawls = tuple(Crawl(ground, (("topic", str(i)),)) for i in range(8))
    count = len(next(iter(values.values()))[0])
    fold = Fold("s", "f", crawls[count:], crawls[:count])
    trials, rows = [], {}
    for method, seeds in values.items():
        for seed, own in enumerate(seeds):
            trial = Trial(fold, method, seed, 0, ("digest",), "code")
            trials.append(trial)
            timing = {"training_cpu_seconds": 0.0}
            rows[trial.name] = {
                "status": "done",
                "area": own,
                "found": own,
                "training_fetches": 0,
                "timing": timing,
            }
    return Study("s", "A study", (fold,)), trials, rows


def test_winners_beat_every_rival() -> None:
    study, trials, rows = sample(
        {
            "random_walk": [[0, 1, 0, 1], [1, 0, 1, 0]],
            "oracle": [[10.5] * 4],
            "z_sum": [[4, 5, 4, 5]],
            "linucb": [[6, 7.2, 6, 7.3]],
            "best_first": [[4, 5.2, 3.9, 5]],
            "ljm": [[5.9, 7, 7, 6]],
        }
    )
    found = outcome(study, trials, rows)
    assert found.scores["area"]["random_walk"].mean == pytest.approx(0)
    assert found.scores["area"]["oracle"].mean == pytest.approx(1)
    assert found.scores["area"]["z_sum"].mean == pytest.approx(0.4)
    assert found.gap("linucb", "z_sum").mean == pytest.approx(0.2125)
    assert found.rivals == ["z_sum", "ljm"] and found.reference == "z_sum"
    assert found.against("linucb") == {"z_sum": WON, "ljm": TIED}
    assert found.against("best_first") == {"z_sum": TIED, "ljm": LOST}
    assert found.winners == []
    study, trials, rows = sample(
        {
            "random_walk": [[0.0] * 3],
            "oracle": [[10.0] * 3],
            "ljm": [[1.0, 1.1, 1.2]],
            "z_sum": [[2.0, 2.1, 2.4]],
            "linucb": [[5.0, 5.2, 5.1]],
            "linear_thompson": [[6.0, 6.2, 6.3], [1.0, 1.2, 1.4]],
        }
    )
    found = outcome(study, trials, rows)
    # The other one has the same promise, but not with every seed.
    assert found.winners == ["linucb"]
    del rows[trials[-1].name]
    assert outcome(study, trials, rows).failed == ("linear_thompson",)


# --- the command


def test_it_runs_reports_and_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["breadth_first", "best_first", "naive_bayes_q"]
    arguments = ["--quick", "--studies", "sites", "news", "--out", str(tmp_path)]
    arguments += ["--methods", *asked, "weblog_td", "--workers", "1", "--tasks", "6"]
    assert command.main(arguments) == 0
    first = contents(tmp_path)
    report = first["report.md"].decode()
    assert "Failed" not in report and "nan" not in report
    assert "/" not in report.partition("## What")[0].replace("/s", "")
    for name in (*asked, "weblog_td", "random_walk", "oracle"):
        assert f"`{name}`" in report
    assert first["differences.png"].startswith(b"\x89PNG")
    capsys.readouterr()
    next(tmp_path.glob("rows/*best_first*")).unlink()
    assert command.main(arguments) == 0
    assert "[1/1]" in capsys.readouterr().out
    assert contents(tmp_path) == first


def contents(out: Path) -> dict[str, bytes]:
    """Return all that must be the same whenever it is made."""
    found = {}
    for file in sorted(out.rglob("*.*")):
        data = file.read_bytes()
        if file.suffix == ".json":
            row = json.loads(data)
            del row["timing"]
            data = json.dumps(row).encode()
        if file.suffix == ".md":
            lines = data.splitlines()
            data = b"\n".join(x for x in lines if b"`naive_bayes_q` |" not in x)
        found[str(file.relative_to(out))] = data
    return found


def test_training_is_kept_and_deterministic(tmp_path: Path) -> None:
    training = pytest.importorskip("benchmarks.generalisation.training")
    (study,) = make_studies(["topics"], [], TINY)
    fold = study.folds[0]
    files = [
        training.train("cloning", {}, fold, seed, 64, tmp_path / str(i))
        for i, seed in enumerate((0, 0, 1))
    ]
    weights = [file.with_suffix(".safetensors").read_bytes() for file in files]
    assert weights[0] == weights[1] != weights[2]
    again = training.train("cloning", {}, fold, 0, 64, tmp_path / "0")
    assert again == files[0]
    env = fold.test[0].make(slots=None)
    agent = methods.prepare("cloning", fold, 0, 64, tmp_path / "0")(env)
    assert agent.training_fetches >= 64


def test_what_cannot_be_asked_for_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: str) -> str:
        with pytest.raises(SystemExit) as caught:
            command.main(arguments)
        assert caught.value.code == 2
        return capsys.readouterr().err

    assert "give some with --traces" in refused("--studies", "recordings")
    assert "there is no agent 'nobody'" in refused("--methods", "nobody")
    assert "no setting 'wings'" in refused("--methods", "best_first:wings=2")
    assert "There is no trace" in refused("--traces", "nowhere", "--quick")
    monkeypatch.setattr("baselines.ljm.TRAINS", True, raising=False)
    assert "ljm trains on what it likes" in refused("--methods", "ljm")
