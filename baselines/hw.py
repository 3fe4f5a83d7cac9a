"""HW: links are worth what the words of their page say of its place around the topic.

The pages of the topic among the examples are layer 0 of the relevancy context graph,
those that link to them layer 1, and so on; a page of layer n has relevancy alpha^n. The
words of the layers make two distributions, one of all examples and one in which each
page counts by its relevancy. Their ratio is the relevancy to expect where a word
occurs, and a page is worth the mean over its feature words.

Paper: C.-C. Hsu, F. Wu, "Topic-specific crawling on the Web with the measurements of
the relevancy context graph" (2006), as summarised by J. Akbari Torkestani, "An adaptive
focused Web crawling algorithm based on learning automata" (2012), whose rival it is.

**Differs from the paper in**: the graph, which there is gathered backwards, by asking a
search engine for the pages that link to examples of the topic. Here a teacher
(``best_first``) crawls ``training`` pages of the same topic before, which are counted
as training fetches; relevant ones are layer 0, and layers go up to ``layers``. Pages
further away, or from which no target was reached, have relevancy 0. Inferred, since
abstract and summary name the two distributions but not how they meet: the ratio above,
with one more occurrence of mean relevancy for each word, and the feature words: the
``features`` words of highest summed tf-idf on layer 0 (topic-specific) and as many over
all examples (general). The summary gives alpha at most 1, and no value: 0.5.
``by="layers"`` is the other reading of "location in the context graph": the layer with
the nearest tf-idf centroid, its relevancy times the cosine. All links of a page are
worth the same; a URL with several takes the best, ties go to the one discovered first.

Cost per step: the words and links of the fetched page (a heap). Before the first step
of a topic, the teacher's crawl and less than 0.1 s of learning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from baselines._examples import Bag, ExampleCrawler, Examples, check_training
from baselines._topic_text import Weighting
from baselines.agent import check_number
from gym_webforage.envs import Known

KINDS = ("topic",)

By = Literal["words", "layers"]


def layer_relevancy(layers: np.ndarray, alpha: float, outermost: int) -> np.ndarray:
    """Return alpha^n for pages of layer n; those beyond the outermost have 0."""
    return np.where(layers <= outermost, alpha ** np.minimum(layers, outermost), 0.0)


@dataclass(frozen=True)
class WordRelevancy:
    """The relevancy to expect of a page where a word occurs."""

    expected: np.ndarray  # by word; NaN where it is no feature word
    mean: float  # over all occurrences

    @classmethod
    def counted(
        cls, texts: list[Bag], relevancy: np.ndarray, feature: np.ndarray
    ) -> WordRelevancy:
        """Count words in pages of known relevancy; ``feature`` marks feature words."""
        total, relevant = np.zeros((2, len(feature)))
        for (tokens, counts), worth in zip(texts, relevancy, strict=True):
            total[tokens] += counts
            relevant[tokens] += worth * counts
        mean = float(relevant.sum() / max(total.sum(), 1))
        expected = (relevant + mean) / (total + 1)
        return cls(np.where(feature, expected, np.nan), mean)

    def of(self, text: Bag) -> float:
        """Return the mean over the feature words of a text, by how often each is."""
        tokens, counts = text
        expected = self.expected[tokens]
        counted = ~np.isnan(expected)
        occurrences = counts[counted].sum()
        if not occurrences:
            return self.mean
        return float(counts[counted] @ expected[counted] / occurrences)


@dataclass
class Hw(ExampleCrawler):
    """Highest expected relevancy first."""

    alpha: float = 0.5
    layers: int = 4
    features: int = 500
    by: By = "words"

    words: WordRelevancy = field(init=False)
    weighting: Weighting = field(init=False)
    centroids: dict[int, np.ndarray] = field(default_factory=dict, init=False)
    """By layer, those that have pages."""

    def study(self, examples: Examples) -> None:
        """Lay the examples out in layers; learn what words say of the layer."""
        texts = examples.texts
        layers = examples.distances(self.layers + 1)
        self.weighting = Weighting.of(texts, len(self.world.trace.vocabulary))
        matrix = self.weighting.matrix(texts)
        feature = np.zeros(len(self.weighting.idf), np.bool_)
        for rows in (matrix[layers == 0], matrix):
            weight = np.asarray(rows.sum(axis=0))
            best = np.argsort(-weight, kind="stable")[: self.features]
            feature[best[weight[best] > 0]] = True
        relevancy = layer_relevancy(layers, self.alpha, self.layers)
        self.words = WordRelevancy.counted(texts, relevancy, feature)
        self.centroids = {
            layer: self.weighting.centroid(
                [texts[i] for i in np.flatnonzero(layers == layer)]
            )
            for layer in np.unique(layers).tolist()
        }

    def value(self, text: Bag) -> float:
        """Return what a page with this text is worth."""
        if self.by == "words":
            return self.words.of(text)
        close = {
            layer: self.weighting.similarity(text, centroid)
            for layer, centroid in self.centroids.items()
        }
        nearest = max(close, key=lambda layer: (close[layer], -layer))
        worth = layer_relevancy(np.array(nearest), self.alpha, self.layers)
        return float(worth) * close[nearest]

    def rate(self, known: Known, page: int, links: np.ndarray) -> np.ndarray:
        """Return the value of the page for each of its links."""
        return np.full(len(links), self.value(known.tokens(page)))


def make(
    env: Any,
    seed: int,
    training: int = 300,
    teacher: str = "best_first",
    alpha: float = 0.5,
    layers: int = 4,
    features: int = 500,
    by: By = "words",
) -> Hw:
    """Make the agent."""
    world = check_training(env, training, teacher)
    check_number("alpha", alpha, 1e-6, 1)
    for name, number in (("layers", layers), ("features", features)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"{name} is {number!r}, expected 1 or more")
    if by not in get_args(By):
        raise ValueError(f"by is {by!r}, expected words or layers")
    return Hw(world, training, teacher, seed, alpha, layers, features, by)
