"""Visit what a network values most, which DQN trained on other topics, sites and days.

The network is that of `masked_ppo`: Q of a candidate is a value of the whole frontier
plus its own score. The weights are shipped; ``python -m baselines.train masked_dqn``
makes others.

Paper: V. Mnih et al., "Human-level control through deep reinforcement learning" (2015);
Z. Wang et al., "Dueling network architectures" (2016), for value plus score; M. Zaheer
et al., "Deep Sets" (2017).

**Differs from the paper in**: masked actions are left out of exploration, of the greedy
choice and of the maximum that is bootstrapped from. The replay keeps candidates' rows
once, in eight bits a column, and ids of them. It trains on the slots and chooses from
the whole frontier, ties to the URL discovered first. Large frontiers are scored as a
whole only now and then; on the validation tasks the mean score of choosing so is .651
(Topic and Spider) and .717 (News), and .649 and .710 of scoring all of it at every
step.

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
    return make_set_forager("masked_dqn", env, weights)
