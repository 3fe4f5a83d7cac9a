"""Visit what the oracle would, as far as a network could learn to tell.

While it trains, the oracle looks into the trace and values every candidate; the network
of `masked_ppo` learns to prefer what the oracle prefers, from columns that a crawler
knows. The weights are shipped; ``python -m baselines.train cloning`` makes others.

Paper: S. Ross, G. Gordon, D. Bagnell, "A reduction of imitation learning and structured
prediction to no-regret online learning" (2011); J. Rennie, A. McCallum, "Using
reinforcement learning to spider the web efficiently" (1999), for the oracle's values.

**Differs from the paper in**: rounds learn from their own steps only and not from all
so far; the mixture of oracle (0.4), chance (0.1) and learner is the same in all of
them. The oracle's choice is soft, in proportion to exp(10 Q / max Q). In News its value
is novel pages a fetch at once. It trains on the slots and chooses from the whole
frontier, ties to the URL discovered first. Large frontiers are scored as a whole only
now and then; on the validation tasks the mean score of choosing so is .619 (Topic and
Spider) and .812 (News), and .629 and .813 of scoring all of it at every step.

Cost per step: one small network in NumPy, over the columns of some 256 candidates:
those that were best when the whole frontier was last scored, and what is new or was
fetched since. All of it is scored again after as many candidates as it has; a frontier
of up to 256 always.
"""

from __future__ import annotations

from typing import Any

from baselines._set_scorer import SetForager, make_set_forager


def make(env: Any, seed: int, weights: str = "") -> SetForager:
    """Make the agent from shipped weights, or those of a file."""
    return make_set_forager("cloning", env, weights)
