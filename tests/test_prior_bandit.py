"""The bandit with a learned prior: what it learns, and what it does with it."""

from __future__ import annotations

import numpy as np
import pytest

from baselines._prior import PriorTrainer
from baselines._training_tasks import sources
from baselines._weights import Weights
from baselines.agent import run_episode
from baselines.prior_bandit import make, make_bandit
from gym_webforage.envs import NewsEnv, TopicEnv

SMALL = "synthetic-small-v0"


class Counter:
    """Stands for a batch, of which only the fetches are asked."""

    fetches = 0


@pytest.fixture(scope="module")
def trainer():
    found = sources(["topic"], [SMALL], 60, {})
    columns = list(TopicEnv(SMALL, slots=None).world.feature_names)
    made = PriorTrainer(Counter(), columns, found, seed=1, crawls=3)  # type: ignore[arg-type]
    made.round()
    return made


def test_the_mean_is_the_ridge_regression_over_crawls(trainer):
    size = len(trainer.columns) + 2
    product = trainer.products.mean(axis=0) + trainer.ridge * np.eye(size)
    arrays = trainer.arrays()
    np.testing.assert_allclose(
        product @ arrays["mean"], trainer.moments.mean(axis=0), atol=1e-10
    )
    assert trainer.steps == trainer.batch.fetches == 180


def test_the_covariance_is_symmetric_and_positive(trainer):
    covariance = trainer.arrays()["covariance"]
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0


def test_crawls_begin_with_the_prior_and_leave_it_alone(trainer):
    learned = Weights(trainer.arrays(), {"columns": trainer.columns})
    before = learned.arrays["mean"].copy()
    env = TopicEnv(SMALL, slots=None, budget=40)
    agent = make_bandit(env.world, learned)
    first = run_episode(env, agent, seed=3)
    assert np.abs(agent.weights - before).max() > 0  # it learned
    np.testing.assert_array_equal(learned.arrays["mean"], before)
    again = run_episode(env, agent, seed=3)
    # Nothing is carried from crawl to crawl.
    np.testing.assert_equal(again.events, first.events)


def test_a_column_that_pays_gets_weight(trainer):
    """In these crawls likeness to the topic is what pays."""
    mean = dict(zip(trainer.columns, trainer.arrays()["mean"], strict=False))
    assert mean["anchor"] + mean["near"] + mean["url"] > 0


def test_news_is_refused():
    found = sources(["news"], [SMALL], "2h", {"features": "transfer"})
    with pytest.raises(ValueError, match="not for news"):
        PriorTrainer(Counter(), [], found, seed=0)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="prior_bandit-news"):
        make(NewsEnv(SMALL, slots=None), 0)


@pytest.mark.parametrize("name", ["alpha", "gamma"])
def test_negative_settings_are_refused(name):
    env = TopicEnv(SMALL, slots=None)
    with pytest.raises(ValueError, match=name):
        make(env, 0, **{name: -1.0})
