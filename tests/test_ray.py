"""The leaderboard on a real Ray cluster of several nodes, one of which is killed."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.leaderboard import main, plan
from benchmarks.live import Course
from benchmarks.tasks import QUICK

ray = pytest.importorskip("ray", reason="Ray, the extra `distributed`, is missing")

pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and processes to be cleaned up by the interpreter's end.
    pytest.mark.filterwarnings("ignore"),
]

SLOW_AGENT = """
import time
from baselines import breadth_first
from baselines.agent import Agent


class Slow(Agent):
    def __init__(self, inner):
        self.inner = inner

    def reset(self, seed=None):
        time.sleep(0.5)
        self.inner.reset(seed)

    def act(self, observation, info):
        return self.inner.act(observation, info)


def make(env, seed):
    return Slow(breadth_first.make(env, seed))
"""


def rows(folder: Path) -> dict[str, Any]:
    found = {file.name: json.loads(file.read_text()) for file in folder.iterdir()}
    for row in found.values():
        del row["timing"], row["made"]
    return found


def test_a_killed_node_changes_no_figure(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    from benchmarks.ray_work import on_cluster

    agent = tmp_path / "slow.py"
    agent.write_text(SLOW_AGENT)
    command = ["--quick", "--tasks", "quick-topic", "quick-spider", "--seeds", "3"]
    command += ["--agents", "best_first", "--agent", str(agent)]
    here, there = tmp_path / "here", tmp_path / "there"
    assert main([*command, "--out", str(here)]) == 0
    names = ["best_first", "random_walk", "oracle", str(agent)]
    tasks = [task for task in QUICK if task.id in ("quick-topic", "quick-spider")]
    jobs = plan(tasks, names, 3, "python -m benchmarks.leaderboard")
    (there / "rows").mkdir(parents=True)
    # Ray takes 127.0.0.1 for another address than it is.
    options = {"node_ip_address": "127.0.0.2", "include_dashboard": False}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={**options, "num_cpus": 1, "object_store_memory": 80_000_000},
    )
    try:
        second, _ = (
            cluster.add_node(
                node_ip_address=f"127.0.0.{number}",
                num_cpus=1,
                object_store_memory=80_000_000,
            )
            for number in (3, 4)
        )
        cluster.wait_for_nodes(timeout=60)
        assert len([node for node in cluster.list_all_nodes()]) == 3
        watch = Killer(Console(quiet=True), len(jobs), cluster, second)
        on_cluster(cluster.address)(jobs, there / "rows", watch)
        watch.thread.join(60)
        assert watch.done == len(jobs) and watch.failed == 0
        assert len(cluster.list_all_nodes()) == 2
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert rows(there / "rows") == rows(here / "rows")


class Killer(Course):
    """Kills a node after the third run."""

    def __init__(self, console: Console, total: int, cluster: Any, node: Any) -> None:
        super().__init__(console, total)
        self.thread = threading.Thread(
            target=cluster.remove_node, args=(node,), kwargs={"allow_graceful": False}
        )

    def tell(self, job: Any, told: dict[str, Any]) -> None:
        if self.done == 3:
            self.thread.start()
