"""Recordings of the real web, made into traces: WARC files, folders, git, live.

Everything that records hands `Capture` objects to a `Builder`, which makes the trace.
Needs the extra ``record``: ``pip install gym-webforage[record]``.
"""

from gym_webforage.record.builder import Builder
from gym_webforage.record.capture import Capture
from gym_webforage.record.notes import Notes, RecordError
from gym_webforage.record.options import Options

__all__ = ["Builder", "Capture", "Notes", "Options", "RecordError"]
