"""The recording: its form in memory and on disk, its structure, its generator."""

from gym_webforage.trace.catalog import load_trace, trace_names
from gym_webforage.trace.errors import TraceError, TraceNotFoundError
from gym_webforage.trace.synthetic import Recipe, generate
from gym_webforage.trace.tables import save_trace
from gym_webforage.trace.trace import Trace

__all__ = [
    "Recipe",
    "Trace",
    "TraceError",
    "TraceNotFoundError",
    "generate",
    "load_trace",
    "save_trace",
    "trace_names",
]
