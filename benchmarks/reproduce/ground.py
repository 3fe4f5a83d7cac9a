"""The picture of a forager's territory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from benchmarks.reproduce.pictures import INK, make_figure
from gym_webforage.envs.render import PAID, RED, VISITED
from gym_webforage.fleet_metrics import Ground

MOST = 300  # URLs that are drawn, those visited most


def territory(series: Mapping[str, Any], title: str) -> Figure:
    """Draw where a forager was: pages, links among them, and its steps."""
    ground = Ground(*(series[f"ground_{name}"] for name in Ground._fields))
    ground = _reduced(ground)
    place = _places(ground)
    figure = make_figure(8, 5.6)
    axes: Any = figure.subplots()
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color("#dfe3e7")
    axes.set_title(title, size=9.5, color=INK, loc="left", weight="bold")
    if not len(place):
        return figure
    links, faint = list(place[ground.links]), "#7f93a8"
    axes.add_collection(LineCollection(links, colors=faint, alpha=0.12, lw=0.6))
    moves, count = np.unique(ground.moves, axis=0, return_counts=True)
    width = 0.5 + 1.8 * np.sqrt(count / count.max(initial=1))
    if len(moves):  # a legend cannot show lines of which there are none
        steps = LineCollection(list(place[moves]), colors=RED, alpha=0.35, lw=width)
        steps.set_label("step")
        axes.add_collection(steps)
    size = 12 + 60 * np.sqrt(ground.visits / max(8, ground.visits.max()))
    paid = ground.paid > 0
    style = {"edgecolors": "white", "linewidths": 0.5, "zorder": 3}
    axes.scatter(*place[~paid].T, s=size[~paid], c=VISITED, **style, label="visited")
    axes.scatter(
        *place[paid].T, s=size[paid], c=PAID, **style, label="visited, novel pages"
    )
    axes.scatter(
        *place[ground.starts].T,
        s=size[ground.starts] + 60,
        marker="s",
        facecolors="none",
        edgecolors=INK,
        linewidths=1.1,
        zorder=4,
        label="start of a path",
    )
    axes.plot([], [], color="#7f93a8", alpha=0.5, lw=1, label="link")
    axes.margins(0.03)
    axes.legend(
        fontsize=8,
        frameon=False,
        labelcolor=INK,
        ncols=5,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        markerscale=0.7,
    )
    return figure


def _reduced(ground: Ground) -> Ground:
    """Keep the pages that were visited most."""
    if len(ground.url) <= MOST:
        return ground
    kept = np.sort(np.argsort(-ground.visits, kind="stable")[:MOST])
    new = np.full(len(ground.url), -1)
    new[kept] = np.arange(MOST)

    def pairs(ends: np.ndarray) -> np.ndarray:
        ends = new[ends]
        return ends[(ends >= 0).all(axis=1)]

    starts = new[ground.starts]
    return Ground(
        ground.url[kept],
        ground.visits[kept],
        ground.paid[kept],
        pairs(ground.links),
        pairs(ground.moves),
        starts[starts >= 0],
    )


def _places(ground: Ground) -> np.ndarray:
    """Let steps, and less so links, pull pages together."""
    count = len(ground.url)
    if not count:
        return np.zeros((0, 2))
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(ground.links.tolist(), weight=0.3)
    graph.add_edges_from(ground.moves.tolist(), weight=1.0)
    place = nx.spring_layout(
        graph, k=1.6 / count**0.5, iterations=200, weight="weight", seed=0
    )
    return np.array([place[i] for i in range(count)])
