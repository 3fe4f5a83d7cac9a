"""Visit what a network scores best, which PPO trained on other topics, sites and days.

One small network scores every candidate of the frontier, steered by what they have in
common; as a residual it only adds to the sum of z-scored columns, where it begins. The
weights are shipped, so that nothing is trained here: ``python -m baselines.train
masked_ppo`` makes others, and `baselines/weights` says on what these were trained.

Paper: J. Schulman et al., "Proximal policy optimization algorithms" (2017); S. Huang,
S. Ontañón, "A closer look at invalid action masking in policy gradient algorithms"
(2022); M. Zaheer et al., "Deep Sets" (2017).

**Differs from the paper in**: the policy is one over sets, of about 30,000 weights,
with the mask taken from the observation. It trains on the slots and chooses greedily
from the whole frontier, ties to the URL discovered first. Large frontiers are scored as
a whole only now and then; on the validation tasks the mean score of choosing so is .684
(Topic and Spider) and .736 (News), and .682 and .733 of scoring all of it at every
step. In News a fetch has a price in training.

Cost per step: one small network in NumPy, over the columns of some 256 candidates:
those that were best when the whole frontier was last scored, and what is new or was
fetched since. All of it is scored again after as many candidates as it has; a frontier
of up to 256 always.
"""

from __future__ import annotations

from typing import Any

from baselines._set_scorer import SetForager, make_set_forager


def make(env: Any, seed: int, residual: bool = False, weights: str = "") -> SetForager:
    """Make the agent from shipped weights, or those of a file.

    Args:
        env: Where it will crawl, alone or in a fleet.
        seed: Of no meaning: it chooses greedily.
        residual: Whether to add to the z-sum instead of scoring from scratch, which did
            better on the validation tasks.
        weights: A file that `baselines.train` wrote, without its ending.
    """
    name = "masked_ppo" if residual else "masked_ppo_plain"
    return make_set_forager(name, env, weights)
