"""Keep the places that paid in a weblog, and start every path from one of the best.

A path follows a direction of its own in the space of page states, which never changes;
selection among start pages, and among foragers, is all that adapts (a *WL* forager).

Paper: Zs. Palotai, Cs. Farkas, A. Lőrincz, "Selection in scale-free small world"
(2005), Algorithms 1-3, 6 and 10-12.

**Differs from the paper in**: nothing that is printed. What is not: random weights are
drawn from the normal distribution. Equal values go to the URL discovered first, in the
weblog to the one that stood higher. The value of a URL includes the reward of its own
step. A state is that of the version last fetched, as a link's target or as the visited
page. A start page that is gone costs a fetch, ends its path and loses three tenths of
its value. A weblog that is not full yet is halved as well, and of an odd number the
parent keeps one more; a child begins a new path. In Topic and Spider, for which it was
not made, there are no paths, and a URL has the state of the page it was found on.

Cost per step: the pages fetched, and one comparison a URL of the frontier, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baselines._forager import WeblogStarts, describe


@dataclass
class Weblog(WeblogStarts):
    """A weblog and fixed random weights; a child gets new ones."""


def make(env: Any, seed: int, **settings: Any) -> Weblog:
    """Make the agent; settings are its fields."""
    agent = Weblog(**describe(env), **settings)
    agent.reset(seed)
    return agent
