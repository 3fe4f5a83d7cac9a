"""A site kept in git: each commit of a branch is a moment in its life.

Only plumbing commands are run, and none that could run a program or reach a network
on a repository's behalf.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple
from urllib.parse import quote

from gym_webforage.record.builder import Builder
from gym_webforage.record.capture import Capture
from gym_webforage.record.notes import RecordError
from gym_webforage.record.render import ENDINGS
from gym_webforage.record.urls import normalise
from gym_webforage.trace.trace import LATEST_TIME, from_iso

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
_CHUNK = 1 << 16


class Change(NamedTuple):
    """A page that a commit wrote or, with no ``blob``, removed."""

    path: bytes
    blob: str | None


def record_git(
    repository: str | Path,
    builder: Builder,
    *,
    branch: str = "HEAD",
    since: str | None = None,
    until: str | None = None,
    base_url: str | None = None,
    path: str = "",
) -> None:
    """Give the pages of a branch, commit by commit, to ``builder``.

    HTML, Markdown and reStructuredText files are pages; their URLs are ``base_url``
    and their path. The first parents of a merge are followed: what others had done on
    a branch became visible with the merge.

    Args:
        repository: The working copy or bare repository.
        builder: Gets the captures.
        branch: A branch, tag or commit.
        since: The time that the recording begins with, as the site was then.
        until: The time that it ends with.
        base_url: What the folder stands for; made from the repository's name if None.
        path: The folder of the repository that the site is in.
    """
    git = _Git(Path(repository))
    base = _base(base_url, git.folder)
    path = path.strip("/")
    low = _time(since, "since", 0)
    high = _time(until, "until", LATEST_TIME)
    moments = _moments(git.commits(branch), low, high)
    if not moments:
        raise RecordError(f"{branch} of {repository} has no commit in that time")
    before, seen = None, -1
    with git.blobs(builder.options.page_bytes + 1) as read:
        for commit, time in moments:
            seen = max(time, seen + 1)  # clocks of committers differ
            for change in git.changes(before, commit, path):
                name = PurePosixPath(os.fsdecode(change.path))
                markup = ENDINGS.get(name.suffix.lower())
                if markup is None:
                    continue
                inside = os.fsencode(name.relative_to(path) if path else name)
                url = base + quote(inside)
                if change.blob is None:
                    builder.add(Capture(url, seen, 410, media=""))
                    continue
                found = read(change.blob)
                if found is None:
                    builder.notes.add("bad file", f"{name} in {commit[:12]}")
                    continue
                body, size = found
                builder.add(Capture(url, seen, body=body, size=size, markup=markup))
            before = commit


def _base(base_url: str | None, folder: Path) -> str:
    if base_url is None:
        name = re.sub("[^a-z0-9]+", "-", folder.stem.lower()).strip("-") or "site"
        base_url = f"https://{name}.test/"  # a name that is nobody's
    base = normalise(base_url)
    if base is None:
        raise RecordError(f"the base URL {base_url!r} is no web address")
    return base if base.endswith("/") else f"{base}/"


def _time(text: str | None, name: str, default: int) -> int:
    if text is None:
        return default
    try:
        return from_iso(text)
    except ValueError as error:
        raise RecordError(f"{name} is {text!r}, expected an ISO 8601 time") from error


def _moments(
    commits: list[tuple[str, int]], low: int, high: int
) -> list[tuple[str, int]]:
    """Return the commits in a time; the newest one before it stands at its begin."""
    before = [commit for commit in commits if commit[1] < low]
    within = [commit for commit in commits if low <= commit[1] <= high]
    if before and within:
        return [(before[-1][0], low), *within]
    return [(before[-1][0], low)] if before else within


class _Git:
    """The few things that are asked of a repository."""

    def __init__(self, repository: Path) -> None:
        if not repository.exists():
            raise RecordError(f"{repository} does not exist")
        self.folder = repository.resolve()
        self._command = ["git", "-C", str(self.folder), "-c", "core.fsmonitor=false"]
        self._environment = {**os.environ, **_ENVIRONMENT}
        self._run("rev-parse", "--git-dir")

    def _run(self, *arguments: str) -> bytes:
        try:
            done = subprocess.run(
                [*self._command, *arguments],
                capture_output=True,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except FileNotFoundError as error:
            raise RecordError("the program git is not installed") from error
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip() or "it failed"
            raise RecordError(f"git {arguments[0]} in {self.folder}: {reason}")
        return done.stdout

    def commits(self, branch: str) -> list[tuple[str, int]]:
        """Return the commits of a branch and their times, the oldest first."""
        name = f"{branch}^{{commit}}"
        try:
            found = self._run("rev-parse", "--verify", "--end-of-options", name)
        except RecordError as error:
            raise RecordError(f"{self.folder} has no branch {branch!r}") from error
        tip = found.decode().split()[-1]
        lines = self._run(
            "rev-list", "--first-parent", "--reverse", "--timestamp", tip
        ).decode()
        pairs = (line.split() for line in lines.splitlines())
        return [
            (commit, min(max(int(time) * 1000, 0), LATEST_TIME))
            for time, commit in pairs
        ]

    def changes(self, before: str | None, commit: str, path: str) -> Iterator[Change]:
        """Yield the files under ``path`` that differ between two commits, by name."""
        within = ["--", f":(literal){path}"] if path else []
        if before is None:
            listed = self._run("ls-tree", "-r", "-z", "--full-tree", commit)
            prefix = os.fsencode(f"{path}/") if path else b""
            for entry in filter(None, listed.split(b"\0")):
                facts, _, name = entry.partition(b"\t")
                mode, _, blob = facts.split()[:3]
                if mode.startswith(b"100") and name.startswith(prefix):
                    yield Change(name, blob.decode())
            return
        listed = self._run(
            "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff",
            "--full-index", before, commit, *within,
        )  # fmt: skip
        fields = listed.split(b"\0")
        for facts, name in zip(fields[::2], fields[1::2], strict=False):
            old_mode, mode, _, blob, _ = facts.lstrip(b":").split()
            if mode.startswith(b"100"):
                yield Change(name, blob.decode())
            elif old_mode.startswith(b"100"):  # removed, or now a link or module
                yield Change(name, None)

    @contextmanager
    def blobs(self, most: int) -> Iterator[_Reader]:
        """Open a way to read files by their name in git."""
        process = subprocess.Popen(
            [*self._command, "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            yield _Reader(process.stdin, process.stdout, most)
        finally:
            process.stdin.close()
            process.stdout.close()
            process.terminate()
            process.wait()


class _Reader:
    """Reads files from ``git cat-file --batch``, large ones in part."""

    def __init__(self, questions: IO[bytes], answers: IO[bytes], most: int) -> None:
        self.questions, self.answers, self.most = questions, answers, most

    def __call__(self, blob: str) -> tuple[bytes, int] | None:
        """Return the beginning of a file and its whole size, None if it is missing."""
        try:
            self.questions.write(f"{blob}\n".encode())
            self.questions.flush()
        except BrokenPipeError as error:
            raise RecordError("git cat-file ended early; try git fsck") from error
        facts = self.answers.readline().split()
        if len(facts) != 3:
            if len(facts) == 2:  # "<blob> missing"
                return None
            raise RecordError("git cat-file ended early; try git fsck")
        size = int(facts[2])
        body = self.answers.read(min(size, self.most))
        left = size - len(body) + 1  # a line end follows
        while left > 0:
            skipped = self.answers.read(min(left, _CHUNK))
            if not skipped:
                raise RecordError("git cat-file ended early; try git fsck")
            left -= len(skipped)
        return body, size
