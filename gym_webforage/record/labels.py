"""A table of URLs and their labels, as tab-separated text."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

from gym_webforage.record.notes import RecordError
from gym_webforage.record.urls import normalise

LABEL_COLUMNS = ("label", "labels", "category", "class", "topic")


@dataclass
class Labels:
    """Which URL carries which labels, and what other columns say of it."""

    labels: dict[str, list[str]] = field(default_factory=dict)
    """By normalised URL."""
    others: dict[str, dict[str, str]] = field(default_factory=dict)
    """By column, then by normalised URL; where a URL has several rows, the first."""
    file: str | None = None

    @property
    def names(self) -> list[str]:
        """All labels, sorted."""
        return sorted({label for labels in self.labels.values() for label in labels})

    @property
    def columns(self) -> list[str]:
        """The named columns besides that of the URL."""
        return list(self.others)


def read_labels(file: str | Path) -> Labels:
    """Read a table whose first column is a URL; a URL may have several rows.

    If the first row has no URL, it names the columns: then the labels are in the one
    called label, category, class or topic. Otherwise they are in the second.
    """
    file = Path(file)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"the labels {file} cannot be read: {error}") from error
    numbered = [(i, row) for i, row in enumerate(rows, 1) if any(map(str.strip, row))]
    if not numbered:
        raise RecordError(f"the labels {file} are empty; expected rows of url, label")
    made = Labels(file=file.name)
    column, names = 1, []
    if normalise(numbered[0][1][0]) is None:
        names = [name.strip() for name in numbered.pop(0)[1]]
        lower = [name.lower() for name in names]
        column = next((lower.index(n) for n in LABEL_COLUMNS if n in lower[1:]), 1)
        made.others = {name: {} for name in names[1:] if name}
    for number, row in numbered:
        if len(row) <= column:
            raise RecordError(
                f"the labels {file}, line {number}: {len(row)} columns, but the label "
                f"is in number {column + 1}; expected url, label with a tab between"
            )
        url = normalise(row[0])
        if url is None:
            raise RecordError(f"the labels {file}, line {number}: {row[0]!r} is no URL")
        label = row[column].strip()
        known = made.labels.setdefault(url, [])
        if label and label not in known:
            known.append(label)
        for name, value in zip(names[1:], row[1:], strict=False):
            if name and value.strip():
                made.others[name].setdefault(url, value.strip())
    return made
