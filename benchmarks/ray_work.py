"""The same runs on a Ray cluster: its nodes make them, this process keeps the rows.

A node that dies costs nothing but time: Ray gives its runs to others.
"""

from __future__ import annotations

import importlib
import os
import traceback
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.work import Row, Runner, Watch, brief, lost, run, write_row

RETRIES = 3  # of a run whose node or process was lost
AHEAD = 2  # runs given to the cluster for each of its cores


def on_cluster(address: str) -> Runner:
    """Return a runner on the cluster at ``address`` (auto: the one of this machine)."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise SystemExit(
            "--ray needs Ray: pip install -c constraints.txt -e '.[distributed]'"
        ) from error

    def run_all(jobs: Sequence[Any], folder: Path, watch: Watch) -> None:
        began_here = not ray.is_initialized()
        if began_here:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        try:
            _spread(ray, jobs, folder, watch)
        finally:
            if began_here:
                ray.shutdown()

    return run_all


def _spread(ray: Any, jobs: Sequence[Any], folder: Path, watch: Watch) -> None:
    threads = {f"{x}_NUM_THREADS": "1" for x in ("OMP", "MKL", "OPENBLAS")}
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(make)
    remote = remote.options(runtime_env={"env_vars": threads})
    waiting = deque(jobs)
    pending: dict[Any, Any] = {}
    while waiting or pending:
        cores = int(ray.cluster_resources().get("CPU", 1))
        while waiting and len(pending) < max(1, AHEAD * cores):
            job = waiting.popleft()
            pending[remote.remote(job)] = job
            watch.begin(job)
        ready, _ = ray.wait(list(pending), num_returns=1, timeout=5)
        for answer in ready:
            job = pending.pop(answer)
            try:
                row = ray.get(answer)
            except ray.exceptions.RayError:
                row = lost(job, traceback.format_exc())
            write_row(job, folder, row)
            watch.end(job, brief(job, row))


def make(job: Any) -> Row:
    """Make a run on a node."""
    return run(job, Path(os.devnull))
