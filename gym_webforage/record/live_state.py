"""The folder in which a live recording keeps its state between one run and the next.

==========================  ==========================================================
``options.json``            what is recorded and how, and when it began
``round-00000.warc.gz``     what the first round captured, and so on
``round-00000.json``        how that round ended; a round without it is unfinished
``lock``                    held while someone records into the folder
==========================  ==========================================================
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from gym_webforage import __version__
from gym_webforage.record.live_warc import sync_folder

AGENT = "webforage"  # the name by which robots.txt may address this crawler
OPTIONS = "options.json"
LOCK_PATIENCE = 10.0  # seconds; a round whose parent was killed ends well before


@dataclass(frozen=True)
class LiveOptions:
    """What a live recording fetches, and how gently.

    Limits on pages, bytes, depth and time hold for each round.
    """

    urls: tuple[str, ...]
    contact: str
    hosts: tuple[str, ...] = ()  # those of the URLs if empty
    depth: int = 16
    max_pages: int = 1_000
    max_bytes: int = 1_000_000_000
    max_time: float = 86_400.0  # seconds
    page_bytes: int = 5_000_000  # a longer page is cut
    delay: float = 1.0  # seconds between two requests to a host
    timeout: float = 30.0  # seconds for one page
    retries: int = 1  # after a network error, when the others of its depth are done
    every: float = 0.0  # seconds from one round to the next; 0: one round
    period: float = 0.0  # seconds in which rounds begin
    allow_private: bool = False
    allow_private_hosts: tuple[str, ...] = ()

    @property
    def user_agent(self) -> str:
        """The name under which pages are asked for."""
        return f"{AGENT}/{__version__} ({self.contact})"

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> LiveOptions:
        """Read what ``to_json`` made."""
        lists = {key: tuple(v) for key, v in values.items() if isinstance(v, list)}
        return cls(**{**values, **lists})


# May change from one run to the next: they say how and how long, not what.
FREE = ("contact", "delay", "timeout", "retries", "every", "period")


class State:
    """A state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether a recording has begun here."""
        return (self.folder / OPTIONS).is_file()

    def check(self) -> None:
        """Refuse a folder that holds something else."""
        if self.exists or not self.folder.exists():
            return
        if any(entry.name != "lock" for entry in self.folder.iterdir()):
            raise FileExistsError(
                f"{self.folder} is no state of a recording; choose another --state"
            )

    def begin(self, options: LiveOptions) -> None:
        """Start a recording, or go on with one if the options agree."""
        began = time.time()
        if self.exists:
            old, began = self.read()
            differ = [
                f"{key.name.replace('_', '-')} is {_shown(was)} there and "
                f"{_shown(now)} here"
                for key in fields(LiveOptions)
                if key.name not in FREE
                and (was := getattr(old, key.name))
                != (now := getattr(options, key.name))
            ]
            if differ:
                raise ValueError(
                    f"{self.folder} holds another recording: {'; '.join(differ)}; "
                    "go on with it by --resume, or choose another --state"
                )
        values = {"options": options.to_json(), "began": began}
        write_whole(self.folder / OPTIONS, json.dumps(values, indent=2) + "\n")

    def read(self) -> tuple[LiveOptions, float]:
        """Return the options and when the recording began."""
        file = self.folder / OPTIONS
        try:
            values = json.loads(file.read_text())
            options = LiveOptions.from_json(values["options"])
            return options, float(values["began"])
        except FileNotFoundError:
            raise FileNotFoundError(
                f"there is no recording to resume in {self.folder}"
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file} is damaged: {error}") from error

    def warc(self, number: int) -> Path:
        """Return the file that holds a round's captures."""
        return self.folder / f"round-{number:05}.warc.gz"

    def summary(self, number: int) -> dict[str, Any] | None:
        """Return how a round ended; None for one that has not."""
        file = self.folder / f"round-{number:05}.json"
        return json.loads(file.read_text()) if file.is_file() else None

    def finish(self, number: int, summary: dict[str, Any]) -> None:
        """Note that a round is complete."""
        file = self.folder / f"round-{number:05}.json"
        write_whole(file, json.dumps(summary, indent=2) + "\n")

    def forget(self, number: int) -> None:
        """Drop a round, to have it done anew."""
        (self.folder / f"round-{number:05}.json").unlink()
        self.warc(number).unlink()

    def warcs(self) -> list[Path]:
        """Return the WARC files of all rounds, in their order."""
        return sorted(self.folder.glob("round-*.warc.gz"))

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Keep others out; yields a handle that hands the lock to a child process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            patience = time.monotonic() + LOCK_PATIENCE
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > patience:
                        raise BlockingIOError(
                            f"another recording is under way in {self.folder}"
                        ) from None
                    time.sleep(0.1)
            yield handle
        finally:
            os.close(handle)


def write_whole(file: Path, text: str) -> None:
    """Write a file so that a crash leaves the old one or the new one."""
    unfinished = file.with_name(f".{file.name}.new")
    with unfinished.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(unfinished, file)
    sync_folder(file.parent)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
