"""Batches parsed in other processes, with the results in the order of the input."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from gym_webforage.record.batch import Job, Parsed, Settings, parse_batch
from gym_webforage.record.notes import RecordError

BATCH_BYTES = 1 << 22
BATCH_JOBS = 1024
AHEAD = 3  # batches under way for each worker, which bounds the memory they take


class Parsers:
    """Parses contents in batches; ``workers=1`` does so in this process.

    Other processes are started with the second batch only, so that a small input
    does not wait for them. The batches, and so the results, do not depend on how many
    there are.
    """

    def __init__(self, settings: Settings, workers: int) -> None:
        self.settings = settings
        self.workers = workers
        self._jobs: list[Job] = []
        self._bytes = 0
        self._batches = 0
        self._pool: ProcessPoolExecutor | None = None
        self._pending: deque[tuple[str, Future[Parsed]]] = deque()

    def submit(self, job: Job) -> Iterator[Parsed]:
        """Take a content; yield the batches that are finished meanwhile."""
        self._jobs.append(job)
        self._bytes += len(job.body)
        if self._bytes >= BATCH_BYTES or len(self._jobs) >= BATCH_JOBS:
            yield from self._send()

    def finish(self) -> Iterator[Parsed]:
        """Yield all batches that are left."""
        if self._jobs:
            yield from self._send()
        while self._pending:
            yield self._next()
        self.close()

    def close(self) -> None:
        """End the other processes; what they were doing is lost."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _send(self) -> Iterator[Parsed]:
        jobs, self._jobs, self._bytes = self._jobs, [], 0
        self._batches += 1
        if self.workers == 1 or self._batches == 1:
            while self._pending:
                yield self._next()
            yield parse_batch(jobs, self.settings)
            return
        if self._pool is None:
            # Not forked: there may be threads, which do not survive a fork.
            self._pool = ProcessPoolExecutor(
                self.workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_ignore_interrupts,
            )
        with _interrupts_held():
            future = self._pool.submit(parse_batch, jobs, self.settings)
        self._pending.append((jobs[0].url, future))
        while self._pending and (
            len(self._pending) > AHEAD * self.workers or self._pending[0][1].done()
        ):
            yield self._next()

    def _next(self) -> Parsed:
        url, future = self._pending.popleft()
        try:
            return future.result()
        except BrokenProcessPool as error:
            raise RecordError(
                f"a parsing process died, near {url}; try --workers 1, or leave that "
                "page out"
            ) from error


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back for a moment, and for ever in processes that are started in it.

    They are deaf to it from their first moment on, not only from their initialiser.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process, which ends the others in good order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
