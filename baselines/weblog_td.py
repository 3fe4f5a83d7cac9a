"""Learn both where to start, by a weblog, and where to go, by temporal differences.

It is the forager of the two papers' crawls of the real web (a *WLRL* forager):
`weblog` and `linear_td` are its two halves.

Paper: Zs. Palotai, Cs. Farkas, A. Lőrincz, "Selection in scale-free small world"
(2005), Algorithms 1-4, 6 and 10-12; Zs. Palotai, S. Mandusitz, A. Lőrincz, "Computer
study of the evolution of 'news foragers' on the Internet" (2006), section 3.

**Differs from the paper in**: what `weblog` and `linear_td` say of weights, ties,
states and rewards. A child has half the weblog and a copy of the weights.

Cost per step: that of `linear_td`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baselines._forager import LearnsWeights, WeblogStarts, describe


@dataclass
class WeblogTD(WeblogStarts, LearnsWeights):
    """A weblog and weights that learn."""


def make(env: Any, seed: int, **settings: Any) -> WeblogTD:
    """Make the agent; settings are its fields."""
    agent = WeblogTD(**describe(env), **settings)
    agent.reset(seed)
    return agent
