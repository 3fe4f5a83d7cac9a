"""BPM: the mean of what LJM expects and of closeness to the known pages of the topic.

LJM gives one value to all links of pages that have the same clusters behind them. So
Batsakis et al. average it with the similarity to a centroid, here of the topic's
example pages, by the words of the page and of the link: among links of equal promise
those whose words look like the topic come first.

Paper: S. Batsakis, E. Petrakis, E. Milios, "Improving the performance of focused web
crawlers" (2009), the HMM crawler with anchor text, page content and centroid
similarity, as summarised by J. Akbari Torkestani, "An adaptive focused Web crawling
algorithm based on learning automata" (2012), whose strongest rival it is.

**Differs from the paper in**: what `ljm.py` says of examples and model. Inferred: the
summary takes the similarity to "the cluster centroid" and leaves open which. A priority
should rise towards targets, so by default it is the cluster of the targets;
``centroid="own"`` is the other reading, the cluster that the page itself belongs to.
Page and link count the same: the similarity is the mean of the two cosines, by tf-idf
with document frequencies of the example pages. A link's text is its anchor, the words
near it and in the URL, as in `best_first.py`.

Cost per step: the words of the fetched page and of its links (a heap). Before the first
step of a topic, the teacher's crawl and about 0.2 s of learning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from baselines._examples import Examples, check_training
from baselines.best_first import bag
from baselines.ljm import Ljm, check_model
from gym_webforage.envs import Known

KINDS = ("topic",)

Centroid = Literal["target", "own"]


@dataclass
class Bpm(Ljm):
    """The mean of the hidden Markov model's value and a centroid similarity."""

    centroid: Centroid = "target"

    centroids: list[np.ndarray] = field(default_factory=list, init=False)
    """Of each cluster, over the vocabulary; that of the targets is the first."""

    def study(self, examples: Examples) -> None:
        """Learn the model, and the centroid of each cluster in words."""
        super().study(examples)
        self.centroids = []
        for cluster in range(max(self.of_example) + 1):
            members = [i for i, own in enumerate(self.of_example) if own == cluster]
            texts = [examples.texts[i] for i in members]
            self.centroids.append(self.weighting.centroid(texts))

    def rate(self, known: Known, page: int, links: np.ndarray) -> np.ndarray:
        """Return the mean of both values for each link."""
        own = self.centroid == "own"
        centroid = self.centroids[self.cluster(known, page) if own else 0]
        weighting = self.weighting
        parent = weighting.similarity(known.tokens(page), centroid)
        words = [
            weighting.similarity(bag(known, link), centroid) for link in links.tolist()
        ]
        closeness = (parent + np.array(words)) / 2
        return (super().rate(known, page, links) + closeness) / 2


def make(
    env: Any,
    seed: int,
    training: int = 300,
    teacher: str = "best_first",
    states: int = 4,
    clusters: int = 8,
    dimensions: int = 20,
    smoothing: float = 0.5,
    centroid: Centroid = "target",
) -> Bpm:
    """Make the agent."""
    world = check_training(env, training, teacher)
    check_model(states, clusters, dimensions, smoothing)
    if centroid not in get_args(Centroid):
        raise ValueError(f"centroid is {centroid!r}, expected target or own")
    return Bpm(
        world,
        training,
        teacher,
        seed,
        states,
        clusters,
        dimensions,
        smoothing,
        centroid,
    )
