"""What is raised when a recording cannot be used."""

from __future__ import annotations


class TraceError(ValueError):
    """A trace that is broken: says which table, which row and why."""

    def __init__(self, table: str, reason: str, row: int | None = None) -> None:
        """Name the ``table`` or file, the ``reason`` and, where known, the ``row``."""
        self.table = table
        self.row = row
        self.reason = reason
        where = table if row is None else f"{table}, row {row}"
        super().__init__(f"{where}: {reason}")

    def __reduce__(self) -> tuple[type, tuple[str, str, int | None]]:
        """Keep the fields when a worker process sends the error to its parent."""
        return type(self), (self.table, self.reason, self.row)


class TraceNotFoundError(FileNotFoundError):
    """No trace of that name or path; the message lists those that exist."""
