"""Record the web as it is now: polite crawls, once or again and again.

A recording consists of rounds. Each starts at the given URLs, follows links breadth
first within its limits, and writes what it gets to a WARC file in a state folder. It
can be stopped or killed at any time and goes on where it was.
"""

from __future__ import annotations

import importlib.util
import json
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gym_webforage.record.live_guard import Guard
from gym_webforage.record.live_state import LiveOptions, State
from gym_webforage.record.live_warc import outcomes

__all__ = ["LiveOptions", "LiveResult", "State", "check_options", "record_live"]

Tell = Callable[[dict[str, Any]], None]


@dataclass
class LiveResult:
    """What a run of ``record_live`` achieved."""

    urls: tuple[str, ...]
    warcs: list[Path] = field(default_factory=list)
    rounds: int = 0  # complete ones
    pages: int = 0  # responses in all rounds
    failed: int = 0
    forbidden: int = 0
    bytes: int = 0
    interrupted: bool = False


def check_options(options: LiveOptions) -> None:
    """Refuse options that cannot lead to a recording, before anything is written."""
    if importlib.util.find_spec("scrapy") is None:
        raise ValueError(
            'recording live needs Scrapy: pip install "gym-webforage[record]"'
        )
    if not options.urls:
        raise ValueError("give at least one URL to start from")
    contact = options.contact.strip()
    if not contact or not contact.isprintable() or not contact.isascii():
        raise ValueError(
            "contact must be an address or web page (in ASCII) by which those whose "
            "pages are recorded can reach you"
        )
    guard = Guard.of(options.allow_private, options.allow_private_hosts)
    for url in options.urls:
        objection = guard.objection(url)
        if objection:
            raise ValueError(f"{url}: {objection.removeprefix('refused: ')}")
    for name in ("max_pages", "max_bytes", "max_time", "page_bytes", "timeout"):
        if not getattr(options, name) > 0:
            raise ValueError(
                f"{name} is {getattr(options, name)}, expected more than 0"
            )
    for name in ("depth", "delay", "retries", "every", "period"):
        if not getattr(options, name) >= 0:
            raise ValueError(f"{name} is {getattr(options, name)}, expected 0 or more")
    if bool(options.every) != bool(options.period):
        raise ValueError("every and for go together: how often, and for how long")


def record_live(
    options: LiveOptions | None,
    folder: str | Path,
    *,
    tell: Tell = lambda _: None,
) -> LiveResult:
    """Crawl until all rounds are done, or until Ctrl-C; return what is there.

    Args:
        options: What to record; None goes on with what is in ``folder``.
        folder: The state folder. A recording with the same options that is there
            goes on, a complete one stays as it is.
        tell: Called with a dictionary of figures whenever more is saved.
    """
    state = State(Path(folder).absolute())
    if options is None:
        options, _ = state.read()
    check_options(options)
    state.check()
    with state.locked() as lock:
        state.begin(options)
        first = state.summary(0)
        if first is not None and not first["pages"] and not options.every:
            state.forget(0)  # such as one without a network: try again
        try:
            interrupted = _rounds(state, lock, tell)
        except KeyboardInterrupt:
            interrupted = True
    return _result(state, options.urls, interrupted)


def due(began: float, every: float, period: float, now: float, done: int) -> float:
    """Return when the next round begins, or -1 if there is none.

    Rounds begin at fixed times; those that came while another was under way are left
    out, so that a slow site is not crawled without pause.

    >>> due(0, 3600, 7200, now=100, done=1), due(0, 3600, 7200, now=4000, done=1)
    (3600, -1)
    """
    if not done:
        return now
    if not every:
        return -1
    begin = began + every * max(1, math.ceil((now - began) / every))
    return begin if begin < began + period else -1


def _rounds(state: State, lock: int, tell: Tell) -> bool:
    """Run the rounds that are left; say whether the user stopped them."""
    number = 0
    while True:
        options, began = state.read()
        while state.summary(number) is not None:
            number += 1
        if not state.warc(number).exists():
            begin = due(began, options.every, options.period, time.time(), number)
            if begin < 0:
                return False
            _wait(begin, number, tell)
        if _run(state, number, lock, tell):
            return True


def _wait(until: float, number: int, tell: Tell) -> None:
    """Wait for a round's time."""
    while (left := until - time.time()) > 0:
        tell({"round": number, "wait": left})
        time.sleep(min(left, 1.0))


def _run(state: State, number: int, lock: int, tell: Tell) -> bool:
    """Crawl one round in a process of its own; say whether the user stopped it."""
    command = [sys.executable, "-m", "gym_webforage.record.live_round"]
    with subprocess.Popen(
        [*command, str(state.folder), str(number)],
        stdin=subprocess.PIPE,  # never written to; its end tells that we are gone
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        pass_fds=(lock,),  # the folder stays locked until the round, too, is gone
        start_new_session=True,  # Ctrl-C comes to us alone, and we pass it on
    ) as child:
        errors: list[str] = []
        listener = threading.Thread(
            target=lambda: errors.extend(child.stderr or ()), daemon=True
        )
        listener.start()
        stopped, last = _listen(child, number, tell)
        listener.join(timeout=1)
    if stopped and child.returncode:
        return True  # by the second Ctrl-C; what was saved is saved
    if child.returncode:
        reason = last.get("broken") or _last_line(errors)
        if child.returncode < 0:
            reason = f"ended by signal {-child.returncode}"
        raise OSError(
            f"round {number + 1} could not go on: {reason}; what is saved is kept, and "
            "the same command goes on"
        )
    return stopped or last.get("ended") == "stopped"


def _listen(
    child: subprocess.Popen[str], number: int, tell: Tell
) -> tuple[bool, dict[str, Any]]:
    """Pass on what a round tells until it ends; the first Ctrl-C asks it to end."""
    last: dict[str, Any] = {}
    stopped = False
    assert child.stdout is not None
    while True:
        try:
            for line in child.stdout:
                with suppress(ValueError):
                    last = json.loads(line)
                    tell({"round": number, **last})
            child.wait()
            return stopped, last
        except KeyboardInterrupt:
            if stopped:
                child.kill()
            else:
                child.send_signal(signal.SIGINT)
                tell({"round": number, "stopping": True})
            stopped = True
        except BaseException:
            child.kill()
            raise


def _last_line(errors: list[str]) -> str:
    lines = [line.strip() for line in errors if line.strip()]
    return lines[-1] if lines else "its process ended without a word"


def _result(state: State, urls: tuple[str, ...], interrupted: bool) -> LiveResult:
    result = LiveResult(urls, state.warcs(), interrupted=interrupted)
    for number, warc in enumerate(result.warcs):
        summary = state.summary(number)
        if summary is not None:
            result.rounds += 1
        else:
            summary = {"pages": 0, "failed": 0, "forbidden": 0, "bytes": 0}
            for outcome in outcomes(warc):
                kind = "forbidden" if outcome.forbidden else "failed"
                summary["pages" if outcome.status else kind] += 1
                summary["bytes"] += len(outcome.body)
        for key in ("pages", "failed", "forbidden", "bytes"):
            setattr(result, key, getattr(result, key) + summary[key])
    return result


def default_state(out: Path) -> Path:
    """Return the state folder that goes with a trace's folder."""
    return out.with_name(f"{out.absolute().name}.live")
