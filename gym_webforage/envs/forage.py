"""One crawler over a recorded web, through Gymnasium."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar, Literal, get_args

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gym_webforage.envs.buffers import BufferPool
from gym_webforage.envs.episode import Episode, EpisodeMaker, Split, TopicGiven
from gym_webforage.envs.knowledge import Info, Known
from gym_webforage.trace import Trace, load_trace
from gym_webforage.world import layout as L
from gym_webforage.world.forager import (
    SHORTLISTS,
    Features,
    Forager,
    Shortlist,
    View,
)
from gym_webforage.world.observe import CONTEXT_COLUMNS, step_and_observe
from gym_webforage.world.rules import Kind, Rules
from gym_webforage.world.world import World

Observation = dict[str, np.ndarray]

MOST_SLOTS = 65_536

DEFAULT_TRACES: dict[Kind, str] = {
    "news": "synthetic-v0",
    "topic": "synthetic-v0",
    "spider": "synthetic-sites-v0",
}


def whole_number(action: Any, expected: str) -> int:
    """Return an action as an int, -1 if it is out of any range."""
    try:
        chosen = operator.index(action)
    except TypeError:
        raise TypeError(
            f"action is {action!r} ({type(action).__name__}), expected an integer: "
            f"{expected}"
        ) from None
    return chosen if -1 <= chosen < 2**31 else -1


def make_rules(kind: Kind, options: Mapping[str, Any]) -> Rules:
    """Build the rules from keyword arguments; an unknown one lists the known."""
    known = {field.name for field in fields(Rules)} - {"kind"}
    unknown = options.keys() - known
    if unknown:
        raise TypeError(
            f"unknown argument {', '.join(sorted(unknown))}; beside those of the view "
            "(trace, slots, features, shortlist, split, ...) there are "
            f"{', '.join(sorted(known))}"
        )
    return Rules(kind=kind, **options)


def make_view(
    rules: Rules,
    slots: int | None,
    features: Features | None,
    shortlist: Shortlist | None,
    scaled: bool,
) -> View:
    """Fill in the defaults of the kind; refuse arguments that make no sense."""
    is_news = rules.kind == "news"
    if features is None:
        # Without slots nothing is written but on demand, so there may be all of it.
        of_news = "all" if slots is None else "state"
        features = of_news if is_news else "transfer"
    if shortlist is None:
        has_window = is_news or rules.reach == "links"
        shortlist = "newest" if has_window else "promising"
    is_number = hasattr(slots, "__index__") and not isinstance(slots, bool)
    if slots is not None and not (is_number and 1 <= slots <= MOST_SLOTS):
        raise ValueError(f"slots is {slots!r}, expected 1 to {MOST_SLOTS}, or None")
    if features not in get_args(Features):
        raise ValueError(
            f"features is {features!r}, expected {', '.join(get_args(Features))}"
        )
    if features != "transfer" and not is_news:
        raise ValueError(
            f"features={features!r} needs the pages' states, which are unknown before "
            f"a fetch in {rules.kind.capitalize()}; use features='transfer'"
        )
    if shortlist not in SHORTLISTS:
        raise ValueError(
            f"shortlist is {shortlist!r}, expected {', '.join(SHORTLISTS)}"
        )
    if not isinstance(scaled, bool):
        raise ValueError(f"scaled is {scaled!r}, expected True or False")
    return View(operator.index(slots or 0), shortlist, features, scaled)


def slot_space(world: World, slots: int, flat: bool) -> spaces.Dict:
    """Return the space of one slot observation."""
    bound = world.trace.state_bound
    if world.view.scaled:
        bound = math.sqrt(slots)  # no z-score of that many numbers is larger
    shape = (slots * world.columns,) if flat else (slots, world.columns)
    return spaces.Dict(
        {
            "candidates": spaces.Box(-bound, bound, shape, np.float32),
            "action_mask": spaces.Box(0, 1, (slots,), np.int8),
            "context": spaces.Box(-1, 1, (CONTEXT_COLUMNS,), np.float32),
        }
    )


class ForageEnv(gym.Env[Any, Any]):
    """The part that News, Topic and Spider share; see `NewsEnv` for the arguments."""

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium declares it so)
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }
    kind: ClassVar[Kind]

    def __init__(
        self,
        trace: str | Trace | None = None,
        *,
        slots: int | None = 128,
        features: Features | None = None,
        shortlist: Shortlist | None = None,
        scaled: bool = False,
        flat: bool = False,
        split: Split = "train",
        on_illegal: Literal["cost", "raise"] = "cost",
        topic: TopicGiven | None = None,
        site: str | None = None,
        log: bool = True,
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(
                f"render_mode is {render_mode!r}, expected one of "
                f"{', '.join(self.metadata['render_modes'])}"
            )
        if on_illegal not in ("cost", "raise"):
            raise ValueError(f"on_illegal is {on_illegal!r}, expected cost or raise")
        self.render_mode = render_mode
        self.on_illegal = on_illegal
        self.flat = flat
        self.rules = make_rules(self.kind, rules)
        view = make_view(self.rules, slots, features, shortlist, scaled)
        self.slots = slots = None if slots is None else operator.index(slots)
        self.trace = load_trace(DEFAULT_TRACES[self.kind] if trace is None else trace)
        self.episodes = EpisodeMaker(self.trace, self.rules, split, topic, site)
        self.world = World(
            self.trace,
            self.rules,
            **asdict(view),
            log=log or render_mode is not None,
        )
        self.episode: Episode | None = None
        self.moment = 0  # counts resets and steps, to tell a stale info
        if slots is None:
            self.action_space = spaces.Discrete(len(self.trace.urls))
            context = spaces.Box(-1, 1, (CONTEXT_COLUMNS,), np.float32)
            self.observation_space = spaces.Dict({"context": context})
        else:
            self.action_space = spaces.Discrete(slots)
            self.observation_space = slot_space(self.world, slots, flat)
        self._expected = "a URL id" if slots is None else f"0 to {slots - 1}"
        self._renderer: Any = None
        self._connect()

    def _connect(self) -> None:
        """Set up what stands for the world's arrays and cannot be copied."""
        world = self.world
        self.known = Known(world)
        self._pool = BufferPool((self.slots or 0, world.columns))
        self._addresses = (
            world.trace_address,
            world.address,
            world.foragers[0].address,
        )

    @property
    def forager(self) -> Forager:
        """The one forager of this world."""
        return self.world.foragers[0]

    # --- Gymnasium

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start a crawl; ``options`` may give roots, site, start and topic."""
        super().reset(seed=seed)
        self.episode = self.episodes.draw(self.np_random, options)
        self.world.reset(
            start=self.episode.start,
            roots=self.episode.roots,
            topic=self.episode.topic,
            site=self.episode.site,
        )
        self.moment += 1
        self._renderer = None
        return self._observe()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, Info]:
        """Visit the URL in slot ``action``, or with ``slots=None`` that URL."""
        chosen = whole_number(action, self._expected)
        if self.episode is None:
            raise gym.error.ResetNeeded("call reset before the first step")
        if self.on_illegal == "raise":
            self._refuse_illegal(chosen, action)
        self.moment += 1
        if self.slots is None:
            result = self.world.step(chosen)
            observation, info = self._observe()
            return (
                observation,
                result.reward,
                result.terminated,
                result.truncated,
                info,
            )
        candidates, since = self._pool.take()
        mask = np.empty(self.slots, np.int8)
        context = np.empty(CONTEXT_COLUMNS, np.float32)
        trace, world, forager = self._addresses
        answer, reward = step_and_observe(
            trace, world, forager, chosen, since, candidates, mask, context
        )
        while answer >= L.GROW_LEDGER:
            self.world.grow(answer, self.forager)
            answer, reward = step_and_observe(
                trace, world, forager, chosen, since, candidates, mask, context
            )
        info = Info(action_mask=mask)
        info._env = self
        info._moment = self.moment
        shown = candidates.reshape(-1) if self.flat else candidates
        return (
            {"candidates": shown, "action_mask": mask, "context": context},
            reward,
            answer & L.ENDED != 0,
            answer & L.TRUNCATED != 0,
            info,
        )

    def _observe(self) -> tuple[Observation, Info]:
        candidates, mask, context = self.world.observe()
        if self.slots is None:
            observation, info = {"context": context}, Info()
        else:
            observation = {
                "candidates": candidates.reshape(-1) if self.flat else candidates,
                "action_mask": mask,
                "context": context,
            }
            info = Info(action_mask=mask)
        info._env = self
        info._moment = self.moment
        return observation, info

    def _refuse_illegal(self, chosen: int, action: int) -> None:
        forager = self.forager
        if self.slots is not None:
            if 0 <= chosen < self.slots and forager.slot[chosen] >= 0:
                return
            legal = f"{np.count_nonzero(forager.slot >= 0)} slots hold a URL"
        else:
            if chosen in forager.action_set():
                return
            legal = f"the action set has {forager.action_set_size()} URLs"
        raise ValueError(f"action {action} is illegal: {legal}; see info['action_set']")

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, as booleans (the name sb3-contrib calls)."""
        if self.slots is not None:
            return self.forager.slot >= 0
        mask = np.zeros(len(self.trace.urls), np.bool_)
        mask[self.forager.action_set()] = True
        return mask

    def action_set(self) -> np.ndarray:
        """Return the URLs that may be visited now, in order of discovery."""
        return self.forager.action_set()

    def with_energy(self) -> np.ndarray:
        """Return the URLs of pages with energy left: none, without a population."""
        return np.zeros(0, np.int32)

    def render(self) -> Any:
        """Draw the known territory as text or as a picture, by ``render_mode``."""
        if self.render_mode is None:
            return None
        if self.episode is None:
            raise gym.error.ResetNeeded("call reset before render")
        from gym_webforage.envs.render import Renderer

        if self._renderer is None:
            self._renderer = Renderer(self.world)
        if self.render_mode == "ansi":
            return self._renderer.ansi()
        return self._renderer.rgb_array()

    # --- beyond Gymnasium

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of a candidate's columns, in order."""
        return self.world.feature_names

    def features(self, urls: Any = None, scaled: bool = False) -> np.ndarray:
        """Return the candidates' columns for known URLs, with a slot or without.

        Without ``urls``: for the action set, in the order of ``info["action_set"]``.
        ``scaled`` gives z-scores over the action set. A URL that was not seen is a
        KeyError.
        """
        return self.world.features(urls, scaled=scaled)

    def events(self) -> dict[str, np.ndarray]:
        """Return the log of this crawl, which `gym_webforage.metrics` reads."""
        return self.world.events()

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        return {
            "world": self.world.snapshot(),
            "episode": asdict(self.episode) if self.episode else None,
            "random": self.np_random.bit_generator.state,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> tuple[Observation, Info]:
        """Put back a state that `snapshot` took; return the observation there."""
        self.world.restore(snapshot["world"])
        self.episode = Episode.restored(snapshot["episode"])
        self.np_random.bit_generator.state = snapshot["random"]
        self.moment += 1
        self._renderer = None
        return self._observe()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out buffers and addresses, which a copy makes for itself."""
        state = self.__dict__.copy()
        for name in ("_pool", "_addresses", "known", "_renderer"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Connect the copy to its own arrays."""
        self.__dict__.update(state)
        self._renderer = None
        self._connect()


class NewsEnv(ForageEnv):
    """Find pages that nobody has found before, on a web that changes by the hour.

    ## Description
    A recorded news site (the *trace*) is replayed in simulated time. To visit a URL
    is to fetch its current version and every page that it links to. All fetched pages
    younger than 24 hours that the crawler has not sent before are sent to a judge, who
    pays for those it has not seen. Since pages on the frontier have been fetched,
    their states are known before they are visited. After 101 visits (a *path*), or at
    a dead end, the crawler starts anew from any URL that it knows. The module
    `gym_webforage.world` states all rules.

    ## Action Space
    `Discrete(slots)`: visit the URL in that slot. The slots are a window on the action
    set (the frontier; at the start of a path the known URLs). An empty slot is
    illegal: it costs a fetch and pays -1, or raises (`on_illegal="raise"`). With
    `slots=None` the action is a URL id, `Discrete(number of URLs)`, and nothing is
    shortlisted.

    ## Observation Space
    A flat `Dict` (with `slots=None` the context alone):

    | key           | shape          | type    | content                              |
    |---------------|----------------|---------|--------------------------------------|
    | `candidates`  | `(slots, k+6)` | float32 | one row a slot, zeros where empty    |
    | `action_mask` | `(slots,)`     | int8    | 1 where the slot holds a URL         |
    | `context`     | `(8,)`         | float32 | budget, time of day, path, rewards   |

    `gym_webforage.world.observe` documents each column. `features="transfer"` leaves
    out the k state columns and adds 6 on how pages changed, `features="all"` has both;
    `scaled=True` makes z-scores of them. Returned arrays never change afterwards.
    `features()` has the same columns for the whole action set.

    ## Rewards
    +100 for each novel page, -1 for a page sent that another forager sent before
    (`judge="selection"`); or -1 for every page sent and +100 if it is novel
    (`judge="evolution"`).

    ## Starting State
    Nothing is fetched; the roots are the action set. The start time is drawn from the
    seed: from the first two thirds of the recording (`split="train"`), the last third
    (`"test"`) or all of it, early enough for the budget.

    ## Episode End
    Terminated: never, since the roots stay known. Truncated: when the budget, by
    default one simulated day, is spent.

    ## Information
    Made when read, before the next step: `action_mask` (int8), `action_set` (URL ids
    in order of discovery), `known` (what this crawler knows:
    `gym_webforage.envs.knowledge.Known`), `clock` (ms), `fetches` (so far), `url`
    (just visited), `fetched`, `sent`, `novel` (in this step), `topic`,
    `episode_start` (what reset drew).

    ## Arguments
    | name              | default     | meaning                                        |
    |-------------------|-------------|------------------------------------------------|
    | `trace`           | synthetic-v0 | name or path of a trace, or a `Trace`         |
    | `slots`           | 128         | size of the window, or None for URL actions    |
    | `features`        | state       | `state`, `transfer`, `all` (without slots all) |
    | `shortlist`       | newest      | which part of the frontier: `newest`, `oldest` |
    | `scaled`          | False       | give `candidates` as z-scores over the slots   |
    | `flat`            | False       | give `candidates` as one vector, row by row    |
    | `split`           | train       | `train`, `test` or `all`                       |
    | `budget`          | 1d          | simulated time (`"12h"`), or fetches (1000)    |
    | `fetch_seconds`   | 2.6         | what a fetch takes                             |
    | `cost`            | fetch       | `bytes`: in proportion to a page's size        |
    | `host_delay`      | 0           | seconds between fetches from one site          |
    | `max_age`         | 24h         | older pages are not sent                       |
    | `path_length`     | 101         | visits in a path                               |
    | `refetch_visited` | True        | fetch linked pages visited in this path, too   |
    | `document`        | version     | `url`: a changed page is no new document       |
    | `judge`           | selection   | or `evolution`                                 |
    | `reward`, `penalty` | 100, -1   | what the judge pays                            |
    | `on_illegal`      | cost        | or `raise`                                     |
    | `log`             | True        | keep the event log that metrics are made from  |
    | `render_mode`     | None        | `ansi` or `rgb_array`                          |

    `reset(options=...)` takes `start` (UTC text or ms), `roots` (URLs or ids), `site`.

    ## References
    Palotai, Farkas, Lőrincz: Selection in scale-free small world (2005).

    ## Version History
    v0: first version.
    """

    kind = "news"


class TopicEnv(ForageEnv):
    """Find pages about a topic, knowing of a link no more than its own text.

    ## Description
    To visit a URL is to fetch that page alone. Before the fetch only the link's own
    text is known: anchor, words near it, words of its URL, title of the page it
    stands on. The module `gym_webforage.world` states all rules.

    ## Action Space
    As in `NewsEnv`; the action set is the frontier: all URLs seen linked and not yet
    visited. With `reach="links"` it is the links of the page visited last, visited or
    not; from a page that is dead or has none the crawler goes back.

    ## Observation Space
    As in `NewsEnv`, with the 21 columns of `features="transfer"` a candidate:
    similarity of link text to the topic, and to links and pages that paid before, worth
    of the source page, running success of source page, directory, tag path, file ending
    and site, depth, waiting time, in-links, novelty. `gym_webforage.world.observe`
    documents each.

    ## Rewards
    A page's relevance the first time it is fetched: its similarity to the topic, or
    with `relevance="label"` 1 for pages that carry the topic's label. Pages from
    `threshold` on count as relevant in the metrics; `webforage info TRACE --topic ...`
    shows which thresholds part the pages.

    ## Starting State
    Nothing is fetched; the roots are the action set; the time is the recording's end.
    The topic is drawn from the seed, out of the trace's labels: two thirds of them
    are for `split="train"`, one third for `"test"`.

    ## Episode End
    Terminated: the action set is empty. Truncated: the budget, by default 1,000
    fetches, is spent.

    ## Information
    As in `NewsEnv`; `topic` is the `Topic` with its name, weights and frequencies.

    ## Arguments
    As in `NewsEnv`, without those of paths and judges, and:

    | name         | default    | meaning                                              |
    |--------------|------------|------------------------------------------------------|
    | `topic`      | None       | a label, a list of words, or `{"pages": [URLs]}`:    |
    |              |            | pages like these; None draws a label                 |
    | `relevance`  | similarity | or `label`                                           |
    | `similarity` | tfidf      | cosine of tf-idf vectors, or `frequency`: of term    |
    |              |            | frequencies over the topic's words alone             |
    | `threshold`  | 0.2        | relevant from this similarity on                     |
    | `budget`     | 1000       | fetches, or simulated time (`"1h"`)                  |
    | `shortlist`  | promising  | or `newest`, `oldest`                                |
    | `reach`      | frontier   | or `links`: only from page to page                   |
    | `revisit`    | free       | a page pays once; or `pays` every time, or `costs`   |
    | `penalty`    | -1         | for a page that has paid, with `revisit="costs"`     |

    `reset(options=...)` takes `topic`, `roots`, `site` and `start`.

    ## Version History
    v0: first version.
    """

    kind = "topic"


class SpiderEnv(ForageEnv):
    """Find the target pages of a site, such as its papers, in few fetches.

    ## Description
    To visit a URL is to fetch that page alone, as in `TopicEnv`, but what pays is a
    fixed set of target pages, and the crawl stays on one site.

    ## Action Space
    As in `TopicEnv`.

    ## Observation Space
    As in `TopicEnv`; similarities to a topic are 0.

    ## Rewards
    1 for each target page fetched the first time.

    ## Starting State
    Nothing is fetched; the site's roots are the action set; the time is the
    recording's end. The site is drawn from the seed: two thirds of the sites are for
    `split="train"`, one third for `"test"` (a trace with one site uses it for both).

    ## Episode End
    As in `TopicEnv`.

    ## Information
    As in `NewsEnv`.

    ## Arguments
    As in `NewsEnv`, without those of paths and judges, `shortlist`, `reach` and
    `revisit` as in `TopicEnv`, and `site`, a site's name (None draws one). The default
    trace is `synthetic-sites-v0`. `reset(options=...)` takes `site`, `roots`, `start`.

    ## References
    Rennie, McCallum: Using reinforcement learning to spider the web efficiently (1999).

    ## Version History
    v0: first version.
    """

    kind = "spider"
