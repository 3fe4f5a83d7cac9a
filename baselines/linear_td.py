"""Learn by temporal differences which page states lead on to what pays, and go there.

The value of a page is linear in its state, and a path goes greedily by it; paths start
from a fixed list, so that only the direction adapts (an *RL* forager).

Paper: Zs. Palotai, Cs. Farkas, A. Lőrincz, "Selection in scale-free small world"
(2005), Algorithms 2-4, 6 and 10-12, and section 4.2.1 for the start list.

**Differs from the paper in**: the start list. The paper's has the start page and the
first 9 URLs visited in an earlier experiment, the same for all; here, where there is
none, each founder takes the first 10 that it visits itself (``first="discovered"``: the
first 10 it comes to know, which all founders share), and children copy it. What is not
printed: random weights are drawn from the normal distribution. Equal values go to the
URL discovered first. There is no update on the first step of a path, whose page was
not chosen by value. A state is that of the version last fetched. The printed rate is
kept as it is. It is large for states of length 7 (50 outputs near -1 or 1): weights
overshoot after a reward, and where paths go back and forth between states unlike
each other they can grow without bound. An update that would take a weight beyond 1e100
is left out, and counted. In Topic and Spider, for which it was not made, the whole
crawl is one path, and a URL has the state of the page it was found on until it is
fetched.

Cost per step: the pages fetched, two comparisons a URL of the frontier, and a product
for those whose value may have become the best, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baselines._forager import FixedStarts, LearnsWeights, describe


@dataclass
class LinearTD(FixedStarts, LearnsWeights):
    """A fixed start list and weights that learn; a child copies both."""


def make(env: Any, seed: int, **settings: Any) -> LinearTD:
    """Make the agent; settings are its fields."""
    agent = LinearTD(**describe(env), **settings)
    agent.reset(seed)
    return agent
