"""Environments: thin faces of one world."""

from gym_webforage.envs.forage import ForageEnv, NewsEnv, SpiderEnv, TopicEnv
from gym_webforage.envs.knowledge import Known
from gym_webforage.envs.vector import (
    ForageVectorEnv,
    NewsVectorEnv,
    SpiderVectorEnv,
    TopicVectorEnv,
)

__all__ = [
    "ForageEnv",
    "ForageVectorEnv",
    "Known",
    "NewsEnv",
    "NewsVectorEnv",
    "SpiderEnv",
    "SpiderVectorEnv",
    "TopicEnv",
    "TopicVectorEnv",
]
