"""One site left out: learn on the others, crawl it with every spider."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import baselines
import gym_webforage
from baselines._naive_bayes import BAGS, BINS, Model, train
from baselines._spider_q import SiteLinks, bin_of, site_links
from baselines.agent import Agent, Transition
from baselines.naive_bayes_q import NaiveBayesQ, Teacher
from benchmarks.runs import checksum
from benchmarks.work import Row, Work, read_row
from gym_webforage import load_trace
from gym_webforage.envs import SpiderEnv
from gym_webforage.trace import Trace

OPTIMAL, BREADTH, RANDOM = "Optimal", "Breadth-First", "Random"
SHARES = (0.05, 0.10, 0.25, 0.50, 0.75, 1.0)
LOGGED = 100  # points of a curve in TensorBoard
FEWEST_STEPS = 2  # from the root to a single target
RARE = 0.02  # share of a site's pages that a telling word stands in, at most


def spider(bins: int, text: str) -> str:
    """Return the name of a learning spider."""
    kind = "RL Immediate" if bins == 2 else f"RL Future ({bins} bins)"
    return f"{kind}, {text}"


SPIDERS = {spider(bins, text): (bins, text) for text in BAGS for bins in BINS}


@dataclass(frozen=True)
class Group:
    """Sites to learn from each other: those of a trace, or of several small ones."""

    name: str
    sources: tuple[str, ...]  # names or paths of traces
    digests: tuple[str, ...]
    unrecorded: float  # share of the URLs

    def load(self, world: str) -> list[Trace]:
        """Return the traces, closed if need be."""
        traces = [load_trace(source) for source in self.sources]
        return [trace.closed() for trace in traces] if world == "closed" else traces


Site = tuple[int, str]  # number of the trace in its group, name


def rooted_sites(traces: Sequence[Trace]) -> list[Site]:
    """Return all sites that have a root."""
    found = []
    for i, trace in enumerate(traces):
        for site in np.unique(trace.url_site[trace.roots]).tolist():
            found.append((i, trace.sites[site]))
    return found


def rich_sites(traces: Sequence[Trace]) -> list[Site]:
    """Return the sites that have a root and targets."""
    return [
        (i, name)
        for i, name in rooted_sites(traces)
        if traces[i].url_target[traces[i].url_site == traces[i].sites.find(name)].any()
    ]


# --- one target a site


def deep_pages(trace: Trace, site: str) -> np.ndarray:
    """Return the pages of a site at least two links from its roots, by depth."""
    links = site_links(trace, site)
    source = trace.version_url[links.version]
    number = trace.sites.find(site)
    level = trace.roots[trace.url_site[trace.roots] == number]
    seen = np.zeros(len(trace.urls), np.bool_)
    seen[level] = True
    deep: list[int] = []
    steps = 0
    while len(level):
        linked = np.unique(links.target[np.isin(source, level)])
        level = linked[~seen[linked]]
        seen[level] = True
        steps += 1
        if steps >= FEWEST_STEPS:
            deep += level.tolist()
    shown = np.array(deep, np.int64)
    recorded = trace.version_start[shown + 1] > trace.version_start[shown]
    last = trace.version_start[shown + 1] - 1
    is_page = recorded & (trace.version_status[last] // 100 == 2)
    return shown[is_page]


def pages_by_kind(trace: Trace, site: str, by: str) -> dict[str, list[int]]:
    """Return the deep pages of each label, or of each telling word of titles."""
    found: dict[str, list[int]] = {}
    pages = deep_pages(trace, site)
    for url in pages.tolist():
        if by == "label":
            low, high = trace.url_label_start[url : url + 2]
            names = [trace.labels[i] for i in trace.url_label[low:high].tolist()]
        else:
            text = int(trace.version_text[trace.version_start[url + 1] - 1])
            low, high = trace.title_start[text : text + 2] if text >= 0 else (0, 0)
            tokens = set(trace.title_token[low:high].tolist())
            names = [trace.vocabulary[token] for token in tokens]
        for name in names:
            found.setdefault(name, []).append(url)
    if by == "label":
        return found
    most = max(3, RARE * len(pages))
    return {name: urls for name, urls in found.items() if len(urls) <= most}


def with_single_targets(
    traces: Sequence[Trace], seed: int
) -> tuple[list[Trace], list[Site], str]:
    """Give each site one target: a page of a kind that every site has.

    A kind is a label, or where no label is shared a word that stands in the titles of
    few pages; the page is at least two links from the root. The seed draws both.
    Returns the traces, the sites and the kind.
    """
    sites = rooted_sites(traces)
    by_site: list[dict[str, list[int]]] = []
    shared: list[str] = []
    for by in ("label", "word"):
        by_site = [pages_by_kind(traces[i], name, by) for i, name in sites]
        shared = sorted(set.intersection(*(set(kinds) for kinds in by_site)))
        if shared:
            break
    if not shared:
        names = ", ".join(trace.name for trace in traces)
        raise ValueError(f"no kind of page is on every site of {names}")
    random = np.random.default_rng([seed, 5])
    order = np.random.default_rng(5).permutation(len(shared))
    kind = shared[int(order[seed % len(shared)])]
    targets: list[list[int]] = [[] for _ in traces]
    for (i, _), kinds in zip(sites, by_site, strict=True):
        targets[i].append(int(random.choice(kinds[kind])))
    made = [t.with_targets(urls) for t, urls in zip(traces, targets, strict=True)]
    return made, sites, kind


# --- a fold


@dataclass(frozen=True)
class Fold(Work):
    """All spiders on one site, the learning ones having learned on the others."""

    group: Group
    world: str  # open or closed
    regime: str  # many or single
    site: Site
    seed: int  # of random walks, and of the choice of single targets
    walks: int
    endings: bool
    code: str

    @property
    def key(self) -> Row:
        """What the figures depend on."""
        own = asdict(self)
        own["group"] = list(self.group.digests)
        return {**own, "version": gym_webforage.__version__}

    @property
    def label(self) -> str:
        """The run's name for readers."""
        more = "" if self.endings else ", endings left out"
        targets = "targets" if self.regime == "many" else f"target {self.seed}"
        return f"{self.group.name}, {self.world}, {targets}, {self.site[1]}{more}"

    @property
    def stem(self) -> str:
        """The first part of the file's name."""
        site = self.site[1].replace("/", "-")
        return f"{self.group.name}-{self.world}-{self.regime}-{site}-{self.seed}"

    def outcome(self, row: Row) -> str:
        """Say what there was to find."""
        found = row["result"]
        return f"{found['targets']:,} targets among {found['urls']:,} URLs"

    def play(self, folder: Path) -> Row:
        """Learn, crawl and keep when each target was found."""
        traces, kind = self.group.load(self.world), ""
        if self.regime == "single":
            traces, sites, kind = with_single_targets(traces, self.seed)
        else:
            sites = rich_sites(traces)
        trace, site = traces[self.site[0]], self.site[1]
        others = [
            site_links(traces[i], name) for i, name in sites if (i, name) != self.site
        ]
        own = site_links(trace, site)
        breadth = baselines.load("breadth_first")
        whole, urls = crawl(trace, site, lambda env: breadth.make(env, 0), 0, None)
        found: dict[str, list[list[int]]] = {BREADTH: [whole]}
        oracle, walk = baselines.load("oracle"), baselines.load("random_walk")
        runs: list[tuple[str, Any, int]] = [(OPTIMAL, lambda e: oracle.make(e, 0), 0)]
        for i in range(self.walks):
            runs.append((RANDOM, lambda e: walk.make(e, 0), 1000 * self.seed + i))
        classifiers, words = {}, {}
        for name, (bins, text) in SPIDERS.items():
            model = train(others, bins=bins, text=text, endings=self.endings)
            classifiers[name] = judged(model, own)
            words[name] = [model.telling_words(number) for number in range(bins)]
            teacher = Teacher(trace, [], bins, text, self.endings, model)
            runs.append((name, lambda _, t=teacher: NaiveBayesQ(t), 0))
        for name, maker, seed in runs:
            at, _ = crawl(trace, site, maker, seed, len(whole))
            found.setdefault(name, []).append(at)
        return {
            "result": {
                "urls": urls,
                "targets": len(whole),
                "kind": kind,
                "found_at": found,
                "classifiers": classifiers,
                "words": words,
            }
        }

    def warm_up(self) -> None:
        """Compile the kernels on a small trace."""
        trace = load_trace("synthetic-small-sites-v0")
        group = Group("warm", (trace.name,), (trace.digest,), 0.0)
        site = (0, trace.sites[0])
        Fold(group, "open", "many", site, 0, 1, True, "").play(Path())

    def log(self, folder: Path, place: Path) -> None:
        """Write what each spider found over the fetches, a run a spider."""
        from benchmarks.tensorboard_log import log_curves

        row = read_row(self, folder)
        assert row is not None
        result = row["result"]
        urls = result["urls"]
        fetches = np.unique(np.linspace(1, urls, LOGGED).round().astype(np.int64))
        for name, crawls in result["found_at"].items():
            if not any(crawls):
                continue
            found = curve(result, name, fetches / urls)
            precision = found * result["targets"] / fetches
            figures = {"result/area": area(result, name)}
            for share in SHARES:
                figures[f"result/links_to_{share:.0%}"] = links_to(result, name, share)
            log_curves(
                place / re.sub(r"[^\w.]+", "-", name).strip("-"),
                {
                    "found_share": (fetches.tolist(), found.tolist()),
                    "precision": (fetches.tolist(), precision.tolist()),
                },
                {
                    "spider": name,
                    "trace": self.group.name,
                    "site": self.site[1],
                    "world": self.world,
                    "targets": self.regime,
                    "endings": self.endings,
                    "seed": self.seed,
                },
                {tag: value for tag, value in figures.items() if value is not None},
            )


def crawl(
    trace: Trace, site: str, maker: Any, seed: int, targets: int | None
) -> tuple[list[int], int]:
    """Crawl until so many targets are found, or the frontier is empty.

    Returns after how many fetches each target was found, and the fetches.
    """
    env = SpiderEnv(trace, slots=None, split="all", budget=len(trace.urls) + 1)
    agent: Agent = maker(env)
    agent.reset(seed)
    observation, info = env.reset(seed=seed, options={"site": site})
    found: list[int] = []
    fetches = 0
    while targets is None or len(found) < targets:
        action = agent.act(observation, info)
        after, reward, ended, cut, info = env.step(action)
        fetches += 1
        if reward > 0:
            found.append(fetches)
        step = Transition(observation, action, float(reward), after, ended, cut, info)
        agent.learn(step)
        observation = after
        if ended or cut:
            break
    return found, fetches


def judged(model: Model, own: SiteLinks) -> dict[str, float | None]:
    """Return how well a model classifies the links of a site that it never saw."""
    said = np.argmax(model.on(own.trace).read(own), axis=1)
    truth = bin_of(own.value, own.is_immediate, model.bins, model.gamma)
    immediate = own.is_immediate
    right = (said == 0) & immediate
    return {
        "accuracy": _share(said == truth),
        "two_bin_accuracy": _share((said == 0) == immediate),
        "recall": _share(right[immediate]),
        "precision": _share(right[said == 0]),
        "other_recall": _share((said != 0)[~immediate]),
    }


def _share(truths: np.ndarray) -> float | None:
    return float(np.mean(truths)) if len(truths) else None


def code() -> str:
    """Return a checksum of all code that a fold depends on."""
    agents = ("naive_bayes_q", "oracle", "breadth_first", "random_walk")
    return checksum(*agents, "benchmarks.reproduce.spidering_runs")


# --- figures of a fold


def links_to(result: Mapping[str, Any], name: str, share: float) -> float | None:
    """Return the share of URLs fetched until a share of the targets was found."""
    needed = math.ceil(share * result["targets"])
    found = [at[needed - 1] for at in result["found_at"].get(name, []) if at]
    return float(np.mean(found)) / result["urls"] if found else None


def area(result: Mapping[str, Any], name: str) -> float | None:
    """Return the mean share of targets found over a crawl of all URLs."""
    areas = [
        float(np.mean(1 - (np.array(at) - 0.5) / result["urls"]))
        for at in result["found_at"].get(name, [])
        if at
    ]
    return float(np.mean(areas)) if areas else None


def curve(result: Mapping[str, Any], name: str, grid: np.ndarray) -> np.ndarray:
    """Return the share of targets found at shares of the URLs fetched."""
    curves = [
        np.searchsorted(np.array(at) / result["urls"], grid, "right") / len(at)
        for at in result["found_at"].get(name, [])
        if at
    ]
    return np.mean(curves, axis=0)
