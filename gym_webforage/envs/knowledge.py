"""What an agent may know: a read-only view of the trace through a forager's eyes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gym_webforage.world import layout as L

if TYPE_CHECKING:
    from gym_webforage.envs.crew import Seat
    from gym_webforage.envs.forage import ForageEnv
    from gym_webforage.world.forager import Forager
    from gym_webforage.world.world import World

Field = Literal["anchor", "near", "url", "title"]


class Known:
    """What the forager has fetched or seen linked; anything else is a KeyError.

    URLs and links are ids. A link's id is its row in the trace's links; only links on
    page versions that the forager holds (the last it fetched of each URL) are known.
    """

    def __init__(self, world: World, forager: int = 0) -> None:
        self._world = world
        self._number = forager

    @property
    def _forager(self) -> Forager:
        return self._world.foragers[self._number]

    @property
    def forager(self) -> int:
        """Whose knowledge it is: the forager's number in its fleet, else 0."""
        return self._number

    @property
    def urls(self) -> np.ndarray:
        """All known URLs, in order of discovery."""
        return self._forager.known

    @property
    def new(self) -> np.ndarray:
        """The URLs that the last step discovered (after a reset: the roots)."""
        return self._forager.new

    @property
    def at_start(self) -> bool:
        """Whether a path begins, so that any known URL may be visited (News)."""
        return bool(self._forager.ints[L.AT_START])

    @property
    def here(self) -> int:
        """The page that it stands on with ``reach="links"``, -1 before the first."""
        number = int(self._forager.ints[L.HERE])
        return int(self._forager.ledger[number, L.URL]) if number >= 0 else -1

    @property
    def choices(self) -> np.ndarray:
        """The action set as discovery numbers, in the frontier's order."""
        return self._forager.choices()

    @property
    def learnt(self) -> np.ndarray:
        """Discovery numbers of the pages that the last step fetched alive, in order."""
        return self._forager.learnt()

    def urls_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the URLs with these discovery numbers."""
        return self._forager.ledger[self._checked(numbers), L.URL]

    def states_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the states of the pages with these discovery numbers.

        One row each, zeros for a page that was never fetched.
        """
        versions = self._forager.ledger[self._checked(numbers), L.VERSION]
        states = self._world.trace.version_state[np.maximum(versions, 0)]
        states[versions < 0] = 0
        return states

    def likeness_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return how like the topic the links to these URLs are (Topic and Spider).

        One row for each discovery number: cosine of anchor, of near text (the best
        over links seen) and of the URL's words with the topic.
        """
        if self._world.rules.kind == "news":
            raise KeyError("News has no topic")
        numbers = self._checked(numbers)
        return self._forager.ledger_floats[numbers, L.ANCHOR_COSINE : L.URL_COSINE + 1]

    def versions_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the versions held of the pages with these discovery numbers, or -1."""
        return self._forager.ledger[self._checked(numbers), L.VERSION]

    def published_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return when these versions were published, in ms; -1 where none is held."""
        versions = self.versions_of(numbers)
        published = self._world.trace.version_published[np.maximum(versions, 0)]
        return np.where(versions >= 0, published, -1)

    def _checked(self, numbers: np.ndarray) -> np.ndarray:
        numbers = np.asarray(numbers)
        if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
            raise TypeError("expected an array of discovery numbers")
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise KeyError(f"discovery numbers here go from 0 to {len(self) - 1}")
        return numbers

    def __contains__(self, url: object) -> bool:
        """Say whether a URL is known."""
        return isinstance(url, int | np.integer) and self._forager.number(int(url)) >= 0

    def __len__(self) -> int:
        """Return how many URLs are known."""
        return int(self._forager.ints[L.KNOWN])

    def _row(self, url: int) -> np.ndarray:
        number = self._forager.number(int(url))
        if number < 0:
            raise KeyError(f"URL {url} has not been seen")
        return self._forager.ledger[number]

    def _link_row(self, url: int) -> np.ndarray:
        if self._world.rules.kind == "news":
            raise KeyError("News keeps no record of which link led to a URL first")
        return self._row(url)

    def _held(self, url: int) -> int:
        version = int(self._row(url)[L.VERSION])
        if version < 0:
            raise KeyError(f"URL {url} has not been fetched")
        return version

    def number(self, url: int) -> int:
        """Return the discovery number, which breaks ties everywhere."""
        self._row(url)
        return self._forager.number(int(url))

    def address(self, url: int) -> str:
        """Return the URL as text."""
        self._row(url)
        return self._world.trace.urls[int(url)]

    def site(self, url: int) -> int:
        """Return the number of the URL's site."""
        self._row(url)
        return int(self._world.trace.url_site[url])

    def is_fetched(self, url: int) -> bool:
        """Say whether a version of the page is held."""
        return int(self._row(url)[L.VERSION]) >= 0

    def depth(self, url: int) -> int:
        """Return how many links from a root it was found (Topic and Spider)."""
        return int(self._link_row(url)[L.DEPTH])

    def source(self, url: int) -> int:
        """Return the URL of the page that it was first found on (Topic and Spider).

        Roots have none: -1.
        """
        number = int(self._link_row(url)[L.SOURCE])
        return int(self._forager.ledger[number, L.URL]) if number >= 0 else -1

    def directory(self, url: int) -> int:
        """Return a number that the URLs of a directory share."""
        self._row(url)
        return int(self._world.trace.url_directory[url])

    def ending(self, url: int) -> int:
        """Return the number of the URL's file ending, 0 for none or a rare one."""
        self._row(url)
        return int(self._world.trace.url_ending[url])

    def tag_path(self, link: int) -> int:
        """Return the number of the tags that a link stands in, -1 if not recorded."""
        self._page_of(link)
        trace = self._world.trace
        text = int(trace.link_text[link])
        return int(trace.tag_path[text]) if text >= 0 else -1

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of `features`, in order."""
        return self._world.feature_names

    def features(self, urls: Any = None, scaled: bool = False) -> np.ndarray:
        """Return what candidates show in the slot view, for any known URLs.

        Without ``urls``: for the action set, in the order of ``info["action_set"]``.
        ``scaled`` gives z-scores over the action set.
        """
        return self._world.features(urls, scaled=scaled, forager=self._number)

    def links(self, url: int) -> np.ndarray:
        """Return the link ids on a fetched page, in page order."""
        version = self._held(url)
        trace, site = self._world.trace, int(self._world.ints[L.SITE])
        links = np.arange(trace.link_start[version], trace.link_start[version + 1])
        if site < 0:
            return links
        return links[trace.url_site[trace.link_target[links]] == site]

    def targets(self, url: int) -> np.ndarray:
        """Return the URLs that a fetched page links to, one for each of its links."""
        return self._world.trace.link_target[self.links(url)]

    def target(self, link: int) -> int:
        """Return the URL that a link goes to."""
        self._page_of(link)
        return int(self._world.trace.link_target[link])

    def text(self, link: int, field: Field) -> np.ndarray:
        """Return the tokens of one of a link's four texts, as vocabulary ids.

        ``anchor``, ``near`` (words before and after), ``url`` (words of the URL it goes
        to), ``title`` (title and headers of the page that it stands on).
        """
        trace = self._world.trace
        version = self._page_of(link)
        if field == "url":
            return self._cut("url_token", int(trace.link_target[link]))
        if field == "title":
            text = int(trace.version_text[version])
            return self._cut("title_token", text)
        if field in ("anchor", "near"):
            return self._cut(f"{field}_token", int(trace.link_text[link]))
        raise ValueError(f"field is {field!r}, expected anchor, near, url or title")

    def texts(self, url: int, field: Field) -> tuple[np.ndarray, np.ndarray]:
        """Return one text of every link on a fetched page, as `text` does for one.

        Where the tokens of each link begin (one more than there are links), and all
        tokens in a row: much faster than one by one.
        """
        trace, links = self._world.trace, self.links(url)
        if field == "url":
            rows = trace.link_target[links]
        elif field == "title":
            rows = np.full(len(links), trace.version_text[self._held(url)])
        elif field in ("anchor", "near"):
            rows = trace.link_text[links]
        else:
            raise ValueError(f"field is {field!r}, expected anchor, near, url or title")
        prefix = "url_token" if field == "url" else field
        start: np.ndarray = getattr(trace, f"{prefix}_start")
        low = start[np.maximum(rows, 0)]
        count = np.where(rows < 0, 0, start[np.maximum(rows, 0) + 1] - low)
        begin = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(count, out=begin[1:])
        place = np.arange(begin[-1]) + np.repeat(low - begin[:-1], count)
        return begin, getattr(trace, f"{field}_token")[place]

    def tokens(self, url: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the text of a fetched page: distinct vocabulary ids and counts."""
        text = int(self._world.trace.version_text[self._held(url)])
        return self._cut("body_token", text), self._cut("body_count", text)

    def state(self, url: int) -> np.ndarray:
        """Return the state vector of a fetched page."""
        return self._world.trace.version_state[self._held(url)]

    def version(self, url: int) -> int:
        """Return the id of the version that was last fetched."""
        return self._held(url)

    def published(self, url: int) -> int:
        """Return when that version was published, in milliseconds."""
        return int(self._world.trace.version_published[self._held(url)])

    def _page_of(self, link: int) -> int:
        """Return the version that a link stands on, if the forager holds it."""
        trace = self._world.trace
        if 0 <= link < len(trace.link_target):
            version = int(np.searchsorted(trace.link_start, link, "right")) - 1
            number = self._forager.number(int(trace.version_url[version]))
            holds = number >= 0 and self._forager.ledger[number, L.VERSION] == version
            site = int(self._world.ints[L.SITE])
            stays = site < 0 or trace.url_site[trace.link_target[link]] == site
            if holds and stays:
                return version
        raise KeyError(f"link {link} has not been seen")

    def _cut(self, column: str, row: int) -> np.ndarray:
        trace = self._world.trace
        values = getattr(trace, column)
        if row < 0:
            return values[:0]
        start = getattr(trace, column.rpartition("_")[0] + "_start", None)
        if column == "url_token":
            start = trace.url_token_start
        assert start is not None
        return values[start[row] : start[row + 1]]


class Info(dict[str, Any]):
    """The ``info`` of a step. What is costly is made only when it is read.

    ``known`` is a live view. The rest describes the moment after its step, so it must
    be read before the next one; later it is a KeyError that says so.
    """

    __slots__ = ("_env", "_moment")

    _env: ForageEnv | Seat
    _moment: int

    def __missing__(self, key: str) -> Any:
        make = _LAZY.get(key)
        if make is None:
            raise KeyError(key)
        env = self._env
        if self._moment != env.moment and key != "known":
            raise KeyError(
                f"info[{key!r}] was not read before the next step, and is gone"
            )
        value = make(env)
        self[key] = value
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, making it if need be, or the default."""
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        """Say whether reading the entry would work."""
        return super().__contains__(key) or (
            key in _LAZY and (self._moment == self._env.moment or key == "known")
        )

    def __copy__(self) -> dict[str, Any]:
        """Return what was made so far as a plain dict."""
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Info:
        """Copy the entries but not the environment behind them."""
        other = Info(
            {k: v.copy() if hasattr(v, "copy") else v for k, v in self.items()}
        )
        other._env = self._env
        other._moment = self._moment
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Send to another process what was made so far, without the live view."""
        return dict, ({k: v for k, v in self.items() if k != "known"},)


_LAZY: dict[str, Any] = {
    "action_mask": lambda env: env.action_masks().astype(np.int8),
    "action_set": lambda env: env.action_set(),
    "with_energy": lambda env: env.with_energy(),
    "known": lambda env: env.known,
    "clock": lambda env: env.world.clock,
    "fetches": lambda env: env.world.fetches,
    "url": lambda env: int(env.forager.ints[L.LAST_URL]),
    "fetched": lambda env: int(env.forager.ints[L.LAST_FETCHES]),
    "sent": lambda env: int(env.forager.ints[L.LAST_SENT]),
    "novel": lambda env: int(env.forager.ints[L.LAST_NOVEL]),
    "episode_start": lambda env: env.episode.describe(env.trace),
    "topic": lambda env: env.episode.topic,
}
