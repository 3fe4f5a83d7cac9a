"""A crawl as text or as a picture: the known territory, the path and what it paid."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from gym_webforage.envs.territory import Territory
from gym_webforage.trace.trace import to_iso
from gym_webforage.world import layout as L

if TYPE_CHECKING:
    from gym_webforage.world.world import World

WIDTH, HEIGHT, DPI = 900, 600, 100
TRAIL = 12  # last visits that the path shows

INK, FAINT, PAPER = "#22303c", "#8796a5", "#fbfaf7"
VISITED, PAID, RED = "#2f6db3", "#f28e1c", "#d62839"
STYLES: dict[str, dict[str, Any]] = {
    "known": {"color": "#d5d9dd", "linewidths": 0.7},
    "frontier": {"facecolors": "white", "edgecolors": "#6ea6d8", "linewidths": 1.1},
    "dead": {"color": FAINT, "marker": "x", "linewidths": 1.1},
    "visited": {"color": VISITED, "linewidths": 0.7},
    "paid": {"color": PAID, "linewidths": 0.7},
    "paid visit": {"facecolors": PAID, "edgecolors": VISITED, "linewidths": 1.6},
    "fresh": {"facecolors": "none", "edgecolors": RED, "linewidths": 1.5},
    "root": {"facecolors": "none", "edgecolors": INK, "marker": "s", "linewidths": 1.5},
}
WORDS = {
    "news": ("novel", "novel page: it paid"),
    "topic": ("relevant", "relevant page: larger, paid more"),
    "spider": ("targets", "target page: it paid"),
}


class Renderer:
    """Draws what one forager of a world knows and does."""

    def __init__(self, world: World, forager: int = 0) -> None:
        if not world.ints[L.MAKES_LOG]:
            raise ValueError("rendering needs a world that keeps its log (log=True)")
        self.world = world
        self.number = forager
        self.territory = Territory()
        self._figure: Any = None

    # --- text

    def ansi(self, width: int = 78, shown: int = 6) -> str:
        """Return the state of the crawl as a few lines of coloured text."""
        urls = self.world.trace.urls
        forager = self.world.foragers[self.number]
        events = self._events()
        visits, paid = self._visits(events)
        actions = forager.action_set()
        lines = [f"\x1b[1m{self._heading()}\x1b[0m", self._facts(events)]
        path = self._path_length(len(visits))
        last = visits[len(visits) - min(shown, path) :]
        lines.append(f"path: last {len(last)} of {path} visits")
        for url, value in zip(last, paid[len(paid) - len(last) :], strict=True):
            colour = "32" if value > 0 else "31" if value < 0 else "2"
            here = ">" if url == visits[-1] else " "
            address = _shortened(urls[int(url)], width - 12)
            lines.append(f" \x1b[{colour}m{_amount(value):>9}\x1b[0m {here}{address}")
        first = "start anywhere among" if forager.ints[L.AT_START] else "frontier:"
        lines.append(f"{first} {len(actions):,} URLs, found first")
        lines += [f"   {_shortened(urls[int(u)], width - 3)}" for u in actions[:shown]]
        return "\n".join(lines) + "\n"

    def _heading(self) -> str:
        world = self.world
        about = f"{world.rules.kind.capitalize()} on {world.trace.name}"
        if world.topic is not None:
            about += f", topic {world.topic.name}"
        if world.ints[L.SITE] >= 0:
            about += f", {world.trace.sites[int(world.ints[L.SITE])]}"
        if len(world.foragers) > 1:
            about += f", forager {self.number}"
        return about

    def _facts(self, events: dict[str, np.ndarray]) -> str:
        """Return clock, budget, fetches, finds and frontier in a line."""
        forager = self.world.foragers[self.number]
        finds = int(forager.ints[L.NOVEL_TOTAL])
        return (
            f"{self._clock()}  {self._budget_left():.0%} of the budget left  "
            f"{len(events['url']):,} fetches  {finds:,} "
            f"{WORDS[self.world.rules.kind][0]}  "
            f"reward {_amount(forager.floats[L.REWARD_TOTAL])}"
        )

    def _clock(self) -> str:
        return to_iso(self.world.clock)[:16].replace("T", " ")

    def _budget_left(self) -> float:
        ints = self.world.ints
        if ints[L.BUDGET_TIME] >= 0:
            used = (ints[L.CLOCK] - ints[L.START]) / ints[L.BUDGET_TIME]
        else:
            used = ints[L.FETCHES] / ints[L.BUDGET_FETCHES]
        return max(0.0, 1 - float(used))

    # --- what happened

    def _events(self) -> dict[str, np.ndarray]:
        events = self.world.events()
        own = events["forager"] == self.number
        return {name: column[own] for name, column in events.items()}

    def _visits(self, events: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the URLs visited, in order, and what each visit paid in all."""
        there = events["flags"] & L.VISITED > 0
        steps = int(self.world.foragers[self.number].ints[L.STEP])
        paid = np.bincount(events["step"], events["value"], steps + 1)
        return events["url"][there], paid[events["step"][there]]

    def _path_length(self, visits: int) -> int:
        """Return how many of the visits belong to the path that is shown."""
        if self.world.rules.kind != "news":
            return visits
        forager = self.world.foragers[self.number]
        # Between two paths the one that just ended is of interest.
        return visits if forager.ints[L.AT_START] else int(forager.ints[L.PATH_VISITS])

    def _update(self, events: dict[str, np.ndarray]) -> None:
        """Take the steps since the last picture into the map."""
        forager = self.world.foragers[self.number]
        ledger = forager.ledger[: forager.ints[L.KNOWN]]
        if len(events["url"]) < self.territory.rows:
            self.territory = Territory()  # another crawl has begun
        territory = self.territory
        found_at = ledger[:, L.FOUND_AT]
        roots = ledger[found_at == 0, L.URL].tolist()
        if not territory.place:
            territory.start(roots)
        first = territory.rows
        territory.rows = len(events["url"])
        columns = ("step", "url", "flags", "value")
        rows = zip(*(events[name][first:].tolist() for name in columns), strict=True)
        near = -1
        for step, url, flags, value in rows:
            if step != territory.steps:
                territory.forget(roots)
                territory.steps = step
            if flags & L.VISITED:
                low, high = np.searchsorted(found_at, [step, step + 1])
                territory.visit(step, url, ledger[low:high, L.URL].tolist())
                near = url
            if flags & L.NOVEL:
                territory.pay(step, url, max(value, 0.0), near)
        territory.forget(roots)

    # --- picture

    def rgb_array(self) -> np.ndarray:
        """Return the picture, uint8 of shape (600, 900, 3)."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise DependencyNotInstalled(
                "drawing needs matplotlib; install it with "
                '`pip install "gym-webforage[render]"`'
            ) from error
        events = self._events()
        self._update(events)
        if self._figure is None:
            size = (WIDTH / DPI, HEIGHT / DPI)
            self._figure = Figure(size, dpi=DPI, facecolor=PAPER)
            FigureCanvasAgg(self._figure)
        figure = self._figure
        figure.clear()
        visits, paid = self._visits(events)
        self._draw_title(figure, events)
        self._draw_map(figure.add_axes((0.01, 0.02, 0.69, 0.85)), events, visits)
        self._draw_key(figure.add_axes((0.715, 0.56, 0.275, 0.31)))
        self._draw_reward(figure.add_axes((0.765, 0.355, 0.215, 0.14)), events)
        self._draw_visits(figure, visits, paid)
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba())[:, :, :3].copy()

    def _draw_title(self, figure: Any, events: dict[str, np.ndarray]) -> None:
        forager = self.world.foragers[self.number]
        hidden = int(forager.ints[L.KNOWN]) - len(self.territory.place)
        capped = f"; {hidden:,} older ones are not drawn" if hidden else ""
        territory = (
            f"{int(forager.ints[L.KNOWN]):,} pages known, "
            f"{forager.action_set_size():,} may be visited next{capped}"
        )
        for y, text, size, weight, colour in (
            (0.955, self._heading(), 13, "bold", INK),
            (0.917, self._facts(events).replace("  ", "   "), 9.5, "normal", INK),
            (0.884, territory, 8.5, "normal", FAINT),
        ):
            figure.text(0.015, y, text, size=size, weight=weight, color=colour)

    def _draw_map(
        self, axes: Any, events: dict[str, np.ndarray], visits: np.ndarray
    ) -> None:
        from matplotlib.collections import LineCollection

        place = self.territory.place
        urls = list(place)
        points = np.array([place[url] for url in urls])
        _frame(axes, points)
        forager = self.world.foragers[self.number]
        rows = forager.ledger[[forager.number(url) for url in urls]]
        visited = rows[:, L.VISITS] > 0
        tree, other = self._edges(urls, rows, visited)
        axes.add_collection(LineCollection(other, colors="#7f93a8", alpha=0.07, lw=0.6))
        axes.add_collection(LineCollection(tree, colors="#7f93a8", alpha=0.35, lw=0.7))
        self._draw_path(axes, visits)

        on_frontier = (rows[:, L.IN_PATH] == forager.ints[L.PATH]) & (
            rows[:, L.PLACE] == L.ON_FRONTIER
        )
        paid = np.array([self.territory.paid.get(url, 0.0) for url in urls])
        finds = paid > 0
        last = events["step"] == forager.ints[L.STEP]
        fresh = finds & np.isin(
            urls, events["url"][last & (events["flags"] & L.NOVEL > 0)]
        )
        dead = np.isin(urls, events["url"][events["flags"] & L.DEAD > 0])
        dead &= rows[:, L.VERSION] < 0
        scale = 1.0 if len(urls) < 250 else 0.75
        size = scale * (18 + 40 * np.sqrt(paid / max(paid.max(initial=0), 1e-9)))
        is_root = rows[:, L.FOUND_AT] == 0
        plain = ~(visited | finds | dead | is_root)
        for style, which, area in (
            ("known", plain & ~on_frontier, 9 * scale),
            ("frontier", plain & on_frontier, 15 * scale),
            ("dead", dead & ~is_root, 14),
            ("visited", visited & ~finds & ~dead, 24 * scale),
            ("paid", finds & ~visited, size),
            ("paid visit", finds & visited, size),
            ("fresh", fresh, size + 45),
            ("root", is_root, 120),
        ):
            area = area[which] if isinstance(area, np.ndarray) else area
            axes.scatter(*points[which].T, s=area, zorder=3, **STYLES[style])
        if len(visits) and int(visits[-1]) in place:
            axes.scatter(
                *place[int(visits[-1])], s=70, color=RED, edgecolors="white", zorder=5
            )

    def _edges(
        self, urls: list[int], rows: np.ndarray, visited: np.ndarray
    ) -> tuple[list[Any], list[Any]]:
        """Return the links of visited pages: those of discovery, then the others."""
        place, parent = self.territory.place, self.territory.parent
        trace = self.world.trace
        tree = [
            (place[parent[url]], place[url])
            for url in urls
            if parent.get(url, -1) in place
        ]
        other = [
            (place[url], place[target])
            for url, version, was in zip(urls, rows[:, L.VERSION], visited, strict=True)
            if was and version >= 0
            for target in trace.links_of(version).tolist()
            if target in place and parent.get(target) != url
        ]
        return tree, other

    def _draw_path(self, axes: Any, visits: np.ndarray) -> None:
        """Draw the last visits as a line that fades into the past."""
        count = min(TRAIL, self._path_length(len(visits)))
        place = self.territory.place
        trail = [place[u] for u in visits[len(visits) - count :].tolist() if u in place]
        for i, (start, end) in enumerate(pairwise(trail), 1):
            share = i / max(1, len(trail) - 1)
            axes.annotate(
                "",
                end,
                start,
                zorder=4,
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": RED,
                    "alpha": 0.15 + 0.7 * share**1.5,
                    "lw": 0.8 + 1.4 * share,
                    "shrinkA": 2,
                    "shrinkB": 3,
                    "connectionstyle": "arc3,rad=0.12",
                },
            )

    def _draw_key(self, axes: Any) -> None:
        """Explain the signs."""
        axes.set(xlim=(0, 1), ylim=(0, 9.4))
        axes.axis("off")
        entries = [
            ("visited", "visited", 30),
            ("frontier", "frontier: may be visited next", 24),
            ("paid", WORDS[self.world.rules.kind][1], 60),
            ("fresh", "found in the last step", 95),
            ("root", "root: where it started", 90),
            ("dead", "dead: cost a fetch, yielded nothing", 18),
        ]
        if self.world.rules.kind == "news":
            entries.append(("known", "known, not in this path", 14))
        for i, (style, text, area) in enumerate(entries):
            y = 8.8 - 1.15 * i
            axes.scatter(0.05, y, s=area, **STYLES[style])
            if style == "fresh":
                axes.scatter(0.05, y, s=50, **STYLES["paid"])
            axes.text(0.12, y, text, size=8.5, color=INK, va="center")
        y = 8.8 - 1.15 * len(entries)
        axes.plot([0.01, 0.085], [y, y], color=RED, lw=2)
        axes.scatter(0.085, y, s=45, color=RED, edgecolors="white", zorder=3)
        axes.text(0.12, y, "last visits, up to here", size=8.5, color=INK, va="center")

    def _draw_reward(self, axes: Any, events: dict[str, np.ndarray]) -> None:
        """Draw the reward so far against fetches."""
        total = np.concatenate([[0], np.cumsum(events["value"], dtype=np.float64)])
        axes.set_facecolor(PAPER)
        axes.fill_between(np.arange(len(total)), total, color=PAID, alpha=0.2, lw=0)
        axes.plot(total, color=PAID, lw=1.5)
        axes.set_xlim(0, max(1, len(total) - 1))
        if not total.any():
            axes.set_ylim(0, 1)
        axes.set_title("reward so far", size=8.5, color=INK, loc="left", pad=4)
        axes.set_xlabel("fetches", size=7.5, color=FAINT, labelpad=1)
        axes.tick_params(labelsize=7, colors=FAINT, length=2)
        axes.locator_params(nbins=4)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(FAINT)

    def _draw_visits(
        self, figure: Any, visits: np.ndarray, paid: np.ndarray, shown: int = 8
    ) -> None:
        """List the last visits and what each paid."""
        figure.text(0.722, 0.262, "last visits, newest first", size=8.5, color=INK)
        last = list(zip(visits.tolist(), paid.tolist(), strict=True))[: -shown - 1 : -1]
        for i, (url, value) in enumerate(last):
            y = 0.234 - 0.028 * i
            colour = PAID if value > 0 else RED if value < 0 else FAINT
            address = _shortened(self.world.trace.urls[url], 34, host=False)
            figure.text(0.765, y, _amount(value), size=7.5, color=colour, ha="right")
            figure.text(0.772, y, address, size=7.5, color=INK, parse_math=False)
        if not last:
            figure.text(0.722, 0.234, "none yet", size=7.5, color=FAINT)


def _frame(axes: Any, points: np.ndarray) -> None:
    """Show all points, moving the frame in coarse steps so that it rarely moves."""
    low, high = points.min(axis=0) - 1.2, points.max(axis=0) + 1.2
    grid = 2.0 ** math.ceil(math.log2(max(8.0, float((high - low).max())) / 24))
    low, high = np.floor(low / grid) * grid, np.ceil(high / grid) * grid
    # A unit is as long upwards as it is sideways.
    box = axes.get_position()
    shape = np.array([box.width * WIDTH, box.height * HEIGHT])
    half = shape * ((high - low) / shape).max() / 2
    (left, bottom), (right, top) = (low + high) / 2 - half, (low + high) / 2 + half
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.set(xticks=[], yticks=[], facecolor="white")
    for spine in axes.spines.values():
        spine.set_color("#dfe3e7")


def _amount(value: float) -> str:
    """Return a reward in few characters."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _shortened(url: str, width: int, host: bool = True) -> str:
    """Return a URL without its scheme, cut in the middle to ``width`` characters."""
    text = url.split("://", 1)[-1]
    if not host and "/" in text:
        text = "/" + text.split("/", 1)[1]
    if len(text) <= width:
        return text
    front = (width - 3) // 3
    return f"{text[:front]}...{text[front + 3 - width :]}"
