"""Which methods take part, what they are, and how they are trained for a fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import baselines
from benchmarks.assemble import ORACLE, RANDOM
from benchmarks.generalisation.studies import Fold
from gym_webforage import load_trace

Z_SUM = "z_sum"
SCALE = (RANDOM, ORACLE)  # the ends of the scale

# The methods of the papers that are reproduced here, by kind. Automata learn over
# repeated crawls of the same topic, which are made before the one that counts.
LAFC = "lafc:crawls=5"
PAPERS = {
    "topic": ("energy_forager", LAFC, "ljm", "bpm", "hw"),
    "spider": ("naive_bayes_q", LAFC),
    "news": ("weblog", "linear_td", "weblog_td"),
}
ONLINE = (
    Z_SUM,
    "linucb",
    "linear_thompson",
    "online_logistic",
    "online_naive_bayes",
    "td_corrected",
    "sleeping_bandit",
    "change_rate",
    "weblog_change",
    "best_first",
    "breadth_first",
)
DEEP = ("masked_ppo", "masked_ppo:residual=true", "boosted_trees", "cloning")
PRIOR = "prior_bandit"
BAYES = ("naive_bayes_q", "td_naive_bayes")
TRAINED = (
    "masked_ppo",
    "masked_dqn",
    "boosted_trees",
    "cloning",
    PRIOR,
    *BAYES,
)
# Told the oracle's value of every candidate at each step: fewer steps teach as much.
TAUGHT, TAUGHT_SHARE = ("boosted_trees", "cloning"), 8
QUICK = (Z_SUM, "linucb", "best_first", "masked_ppo", "naive_bayes_q", "weblog_td")

MODEL = {"bins": 3, "text": "related", "endings": True}  # of naive Bayes
# Greedy from first to last: another seed gives the same crawl.
NO_CHANCE = (
    ORACLE,
    Z_SUM,
    "linucb",
    "online_logistic",
    "online_naive_bayes",
    "td_corrected",
    "change_rate",
    "best_first",
    "breadth_first",
    *BAYES,
)


def defaults() -> list[str]:
    """Return all methods that take part unless others are asked for."""
    papers = [name for names in PAPERS.values() for name in names]
    return known([*ONLINE, *papers, *BAYES, PRIOR, *DEEP])


def known(names: Sequence[str]) -> list[str]:
    """Return those of the names that are baselines here, each once."""
    here = baselines.names()
    return [x for x in dict.fromkeys(names) if baselines.split(x)[0] in here]


def check(names: Sequence[str]) -> list[str]:
    """Return the names without doubles, with the ends of the scale; refuse others."""
    for name in names:
        (baselines.load if ":" in name else baselines.find)(name)
        if baselines.trains(name) and not is_trained(name):
            raise LookupError(
                f"{name} trains on what it likes; expected a method that learns while "
                f"it crawls, or one of {', '.join(TRAINED)}"
            )
    return list(dict.fromkeys([*SCALE, *names]))


def plays(name: str, kind: str) -> bool:
    """Say whether a method takes part in studies of a kind.

    A paper's method is asked for what its paper is about, and for nothing else.
    """
    about = [other for other in PAPERS if is_of_paper(name, other)]
    return kind in baselines.kinds(name) and (kind in about or not about)


def is_of_paper(name: str, kind: str) -> bool:
    """Say whether a method is one of the papers', in studies of a kind."""
    method = baselines.split(name)[0]
    return method in [baselines.split(other)[0] for other in PAPERS[kind]]


def is_trained(name: str) -> bool:
    """Say whether a method is trained on the fold's training crawls."""
    return baselines.split(name)[0] in TRAINED


def steps_of(name: str, steps: int) -> int:
    """Return the steps that a method is trained for; 0 if it is not trained."""
    if not is_trained(name):
        return 0
    is_taught = baselines.split(name)[0] in TAUGHT
    return max(1, steps // TAUGHT_SHARE) if is_taught else steps


def has_chance(name: str) -> bool:
    """Say whether another seed may give another result."""
    return baselines.split(name)[0] not in NO_CHANCE


def group(name: str, kind: str) -> str:
    """Return what a method is, for readers."""
    if is_of_paper(name, kind):
        return "paper"
    return "trained" if is_trained(name) else "online"


Maker = Callable[[Any], Any]  # takes an environment, returns an agent


def prepare(name: str, fold: Fold, seed: int, steps: int, folder: Path) -> Maker:
    """Return what makes agents of a method; a trained one is trained here.

    What was trained is kept in ``folder``, and training that was cut short goes on.
    """
    method, settings = baselines.split(name)
    module = baselines.load(method)
    if not is_trained(name):
        return lambda env: module.make(env, seed, **settings)
    if method in BAYES:
        model = {key: settings.pop(key, value) for key, value in MODEL.items()}
        file = folder / "model.npz"
        if not file.is_file():
            _train_bayes(fold, model, file)
        return lambda env: module.make(env, seed, **settings, model=str(file))
    from benchmarks.generalisation.training import train

    weights = train(method, settings, fold, seed, steps, folder)
    return lambda env: module.make(env, seed, **settings, weights=str(weights))


def _train_bayes(fold: Fold, settings: dict[str, Any], file: Path) -> None:
    """Learn from the whole of each training site, as the paper does."""
    from baselines._naive_bayes import train
    from baselines._spider_q import site_links

    sites = [
        site_links(load_trace(crawl.ground.trace), str(crawl.options["site"]))
        for crawl in fold.train
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    train(sites, **settings).save(file)
