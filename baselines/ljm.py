"""LJM: follow the links that a hidden Markov model expects to lead to a target next.

The hidden state of a page is how many links it is away from the nearest page of the
topic; what is seen of it is the cluster that its text belongs to. From example pages
the model learns which clusters occur how far from targets, and how far one link goes.
While crawling, the forward probabilities of the states are carried along the path to
each page, and its links are worth the probability that the next page is a target.

Paper: H. Liu, J. Janssen, E. Milios, "Using HMM to learn user browsing patterns for
focused Web crawling" (2006), as summarised by J. Akbari Torkestani, "An adaptive
focused Web crawling algorithm based on learning automata" (2012), whose rival it is.

**Differs from the paper in**: the example paths, which there come from a user who
browses and marks targets. Here a teacher (``best_first``) crawls ``training`` pages of
the same topic before, which are counted as training fetches; relevant ones are the
targets. Inferred, since the summary gives no sizes: the states are 0, 1, ...,
``states`` - 1 links or more; all targets are one cluster, the other pages at most
``clusters`` - 1 by X-means on ``dimensions`` axes of latent semantic indexing; links
and pages are counted, with ``smoothing`` added to each count; all states are equally
likely at a root. A page belongs to the cluster of the nearest centroid. Probabilities
are scaled to sum 1 at each page, so that long paths compare with short ones. All links
of a page are worth the same; a URL with several takes the best, and the path to it is
the one of that link. Ties go to the URL discovered first.

Cost per step: the words and links of the fetched page (a heap). Before the first step
of a topic, the teacher's crawl and about 0.2 s of learning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baselines._examples import ExampleCrawler, Examples, check_training
from baselines._topic_text import Weighting, semantic_axes, unit, x_means
from baselines.agent import check_number
from gym_webforage.envs import Known

KINDS = ("topic",)


def share(counts: np.ndarray, smoothing: float) -> np.ndarray:
    """Return counts as probabilities, row by row, with ``smoothing`` added to each."""
    counts = counts + smoothing
    total = counts.sum(axis=1, keepdims=True)
    return np.divide(
        counts, total, out=np.full_like(counts, 1 / counts.shape[1]), where=total > 0
    )


@dataclass(frozen=True)
class HiddenMarkov:
    """Distances to a target as states, clusters of pages as what is seen."""

    move: np.ndarray  # from state, to state
    show: np.ndarray  # state, cluster

    @classmethod
    def counted(
        cls,
        states: np.ndarray,
        clusters: np.ndarray,
        links: list[tuple[int, int]],
        *,
        shape: tuple[int, int],
        smoothing: float,
    ) -> HiddenMarkov:
        """Estimate it from pages whose states and clusters are known."""
        move, show = np.zeros((shape[0], shape[0])), np.zeros(shape)
        source, target = np.array(links, np.int64).reshape(-1, 2).T
        np.add.at(move, (states[source], states[target]), 1)
        np.add.at(show, (states, clusters), 1)
        return cls(share(move, smoothing), share(show, smoothing))

    def forward(self, before: np.ndarray | None, cluster: int) -> np.ndarray:
        """Return the states' probabilities at a page of this cluster.

        ``before`` has those of the page that led to it, None for a root.
        """
        expected = np.ones(len(self.move)) if before is None else self.expect(before)
        joint = expected * self.show[:, cluster]
        total = joint.sum()
        return joint / total if total else np.full(len(joint), 1 / len(joint))

    def expect(self, here: np.ndarray) -> np.ndarray:
        """Return the states' probabilities one link further."""
        return here @ self.move


@dataclass
class Ljm(ExampleCrawler):
    """Most probable target next."""

    states: int = 4
    clusters: int = 8
    dimensions: int = 20
    smoothing: float = 0.5

    model: HiddenMarkov = field(init=False)
    weighting: Weighting = field(init=False)
    of_example: list[int] = field(default_factory=list, init=False)
    """The cluster of each example page; 0 is that of the targets."""

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        self._belief: dict[int, np.ndarray] = {}  # states' probabilities by page

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl; what was learned of a topic is kept for that topic."""
        super().reset(seed)
        self._belief = {}

    def study(self, examples: Examples) -> None:
        """Cluster the examples and count how they follow each other."""
        texts = examples.texts
        self.weighting = Weighting.of(texts, len(self.world.trace.vocabulary))
        matrix = self.weighting.matrix(texts)
        self._axes = semantic_axes(matrix, self.dimensions)
        places = unit(matrix @ self._axes)
        of_page = np.zeros(len(texts), np.int64)
        others = ~examples.is_target
        if others.any():
            of_page[others] = 1 + x_means(places[others], self.clusters - 1)
        self.of_example = of_page.tolist()
        count = int(of_page.max()) + 1
        self._centres = unit(
            np.stack([places[of_page == i].mean(axis=0) for i in range(count)])
        )
        self.model = HiddenMarkov.counted(
            examples.distances(self.states - 1),
            of_page,
            examples.links,
            shape=(self.states, count),
            smoothing=self.smoothing,
        )

    def cluster(self, known: Known, page: int) -> int:
        """Return the cluster whose centroid is nearest to a page."""
        tokens, weights = self.weighting.weigh(known.tokens(page))
        return int(np.argmax(self._centres @ (weights @ self._axes[tokens])))

    def rate(self, known: Known, page: int, links: np.ndarray) -> np.ndarray:
        """Return the probability that the next page is a target, for each link."""
        source = self.came_from.get(page, -1)
        belief = self.model.forward(self._belief.get(source), self.cluster(known, page))
        self._belief[page] = belief
        return np.full(len(links), self.model.expect(belief)[0])


def make(
    env: Any,
    seed: int,
    training: int = 300,
    teacher: str = "best_first",
    states: int = 4,
    clusters: int = 8,
    dimensions: int = 20,
    smoothing: float = 0.5,
) -> Ljm:
    """Make the agent."""
    world = check_training(env, training, teacher)
    check_model(states, clusters, dimensions, smoothing)
    return Ljm(world, training, teacher, seed, states, clusters, dimensions, smoothing)


def check_model(states: int, clusters: int, dimensions: int, smoothing: float) -> None:
    """Refuse sizes that make no model."""
    sizes = {"states": states, "clusters": clusters, "dimensions": dimensions}
    for name, size in sizes.items():
        least = 1 if name == "dimensions" else 2
        if isinstance(size, bool) or not isinstance(size, int) or size < least:
            raise ValueError(f"{name} is {size!r}, expected {least} or more")
    check_number("smoothing", smoothing, 0)
