"""A leaderboard of made-up figures and recorded crawls, with hostile names in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.board import Board
from benchmarks.page.replay import record
from benchmarks.tasks import QUICK

AGENTS = (
    "oracle",
    "best_first",
    "naive_bayes_q",
    "ppo",
    "linear_td:alpha=0.2",
    "breadth_first",
    "random_walk",
    "weblog",
    "broken",
)
HOSTILE = (
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror='window.hacked=2'>",
    "\"'`${window.hacked=3}`",
    "abc\u202egpj.exe",
    "&lt;b&gt;&amp;",
)
TASKS = ("news", "topic", "spider")
X = np.linspace(0, 1, 21)


def board(*, replays: bool = True, hostile: bool = False) -> Board:
    """Return a board of nine agents on three tasks."""
    random = np.random.default_rng(7)
    agents = [*AGENTS, *(HOSTILE if hostile else ())]
    skill = {agent: max(0.02, 1 - 0.13 * i) for i, agent in enumerate(agents)}
    tasks: list[Any] = [_task(task, agents, skill, random) for task in TASKS]
    failures: list[Any] = [
        {
            "task": "spider",
            "agent": "broken",
            "seed": 3,
            "traceback": 'Traceback (most recent call last):\n  File "broken.py", '
            "line 12, in act\n    return self.scores[url]\nKeyError: 17\n",
        }
    ]
    if hostile:
        failures += [
            {"task": text, "agent": text, "seed": 0, "traceback": f"{text}\n{text}"}
            for text in HOSTILE
        ]
    made: Board = {
        "made": {
            "version": "0.1.0",
            "commit": "aee04c6d11f2",
            "command": "python -m benchmarks.leaderboard --full",
            "seeds": 10,
            "rows": 270,
            "versions": {"python": "3.11.2", "numpy": "2.4.6"},
            "resamples": 2_000,
        },
        "groups": [_group(task["id"], [task], agents) for task in tasks],
        "tasks": tasks,
        "failures": failures,
        "fleets": [_fleet(agent, random) for agent in ("weblog", "ppo")],
        "improvement": {"news": _improvement(agents[:6])},
        "profiles": {"news": _profile(agents[:8], skill)},
    }
    if replays:
        made["replays"] = [
            record(QUICK[0], "best_first", seed=0, steps=120),
            record(QUICK[2], "breadth_first", seed=1, steps=60),
        ]
    return made


def _task(task: str, agents: list[str], skill: dict[str, float], random: Any) -> Any:
    standings = []
    for place, agent in enumerate(agents):
        score = skill[agent] + random.normal(0, 0.02)
        width = 0 if agent in ("oracle", "random_walk") else random.uniform(0.02, 0.1)
        mean = 600 * skill[agent] * X ** (0.6 + 0.1 * place)
        failed = 1 if agent == "broken" and task == "spider" else 0
        standings.append(
            {
                "agent": agent,
                "rank": None if failed else place + 1,
                "rank_last": None if failed else place + 1 + (place % 3 == 1),
                "rank_ties": [],
                "score": None if failed else score,
                "low": None if failed else score - width,
                "high": None if failed else score + width,
                "found_mean": mean[-1],
                "found_low": mean[-1] * 0.94,
                "found_high": mean[-1] * 1.05,
                "area": float(mean.mean()),
                "area_score": score * 0.9,
                "found_at": {"50 %": mean[10]},
                "curve": {
                    "x": X.tolist(),
                    "mean": mean.tolist(),
                    "low": (0.9 * mean).tolist(),
                    "high": (1.08 * mean).tolist(),
                },
                "fetches": 1_000.0,
                "steps": 1_000.0,
                "cpu_seconds": 0.1 * (place * 7 % 5 + 1),
                "illegal": 0.0,
                "failed": failed,
                "runs": 10,
                "sees": {
                    "privileged": agent == "oracle",
                    "trains": agent in ("naive_bayes_q", "ppo"),
                    "training_fetches": 40_000.0 if agent == "ppo" else 0.0,
                    "slots": 128 if agent == "ppo" else None,
                    "text": "the whole trace" if agent == "oracle" else "the frontier",
                },
            }
        )
    return {
        "id": task,
        "group": task,
        "kind": task,
        "fleet": "",
        "trace": "synthetic-v0",
        "budget": 1_000,
        "finds": "targets",
        "title": f"{task}: targets in 1,000 fetches on synthetic-v0",
        "scaled_seeds": 10,
        "seeds": 10,
        "standings": standings,
    }


def _group(group: str, tasks: list[Any], agents: list[str]) -> Any:
    standings = []
    for row in tasks[0]["standings"]:
        sees = row["sees"]
        cell = {key: row[key] for key in ("score", "low", "high", "failed")}
        kept = ("agent", "rank", "rank_last", "rank_ties", "score", "low", "high")
        standings.append(
            {
                **{key: row[key] for key in kept},
                "area_score": row["area_score"],
                "tasks_run": len(tasks),
                "per_task": {group: {**cell, "found": row["found_mean"]}},
                "cpu_seconds": row["cpu_seconds"],
                "steps": row["steps"],
                "training_fetches": sees["training_fetches"],
                "privileged": sees["privileged"],
                "trains": sees["trains"],
                "sees": sees["text"],
                "failed": row["failed"],
                "runs": row["runs"],
            }
        )
    title = f"{group.capitalize()}, one crawler"
    return {"id": group, "title": title, "tasks": [group], "standings": standings}


def _fleet(agent: str, random: Any) -> Any:
    time = np.linspace(0, 24, 49)
    births = np.minimum(16, 2 + np.floor(time * random.uniform(0.5, 1.2)))
    freshness = 0.7 + 0.15 * np.sin(time / 4) + random.normal(0, 0.01, len(time))
    return {
        "task": "fleet-news",
        "agent": agent,
        "seed": 0,
        "time": time.tolist(),
        "population": births.astype(int).tolist(),
        "freshness": [None, *freshness[1:].tolist()],
        "found": (100 * time).astype(int).tolist(),
    }


def _improvement(agents: list[str]) -> Any:
    place = np.arange(len(agents))
    mean = 1 / (1 + np.exp(place[:, None] - place[None, :]))
    return {
        "agents": agents,
        "mean": mean.tolist(),
        "low": np.maximum(0, mean - 0.1).tolist(),
        "high": np.minimum(1, mean + 0.1).tolist(),
    }


def _profile(agents: list[str], skill: dict[str, float]) -> Any:
    threshold = np.linspace(-0.2, 1.2, 36)
    share = {a: 1 / (1 + np.exp(12 * (threshold - skill[a]))) for a in agents}
    return {
        "threshold": threshold.tolist(),
        "share": {agent: values.tolist() for agent, values in share.items()},
        "low": {
            a: np.maximum(0, values - 0.08).tolist() for a, values in share.items()
        },
        "high": {
            a: np.minimum(1, values + 0.08).tolist() for a, values in share.items()
        },
    }
