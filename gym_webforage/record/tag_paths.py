"""Where in a page's markup a link stands: the tags around it, with their classes.

Links with one tag path have one role on a site: menu, list of results, running text.
A path has names of tags, classes and ids only, no word of the page, and is short
whatever the markup is: ``body div.content ul.results li a``.
"""

from __future__ import annotations

import re
from typing import Any

DEEPEST = 12  # elements, the nearest ones to the link
LONGEST = 160  # characters
LONGEST_NAME = 24
MOST_CLASSES = 2
MOST_PATHS = 65_536  # of a recording

# The ids of these are mostly made of a heading's words.
_PARTS_OF_TEXT = frozenset(
    "a article b code dd dfn dl dt em figure h1 h2 h3 h4 h5 h6 i li p pre section span "
    "strong td th tr".split()
)
_DIGITS = re.compile(r"\d+")
_ODD = re.compile(r"[^\w-]+")


class TagPaths:
    """Finds the tag paths of one page's links."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}

    def of(self, node: Any) -> str:
        """Return the tag path of an element."""
        names: list[str] = []
        length = -1
        while node is not None and len(names) < DEEPEST:
            name = self._names.get(node)
            if name is None:
                name = self._names[node] = _name(node)
            length += len(name) + 1
            if not name or length > LONGEST:
                break
            names.append(name)
            node = node.parent
        return " ".join(reversed(names))


def _name(node: Any) -> str:
    """Return an element's tag with its classes, or its id if it has none.

    The root has no name: it is the same everywhere.
    """
    tag = node.tag
    if tag == "html" or tag.startswith("#"):
        return ""
    name = _ODD.sub("", tag[:LONGEST_NAME])  # h1 and h2 are not the same
    classes = (node.getattr("class") or "")[:200].split()
    plain = [_plain(part) for part in classes[:MOST_CLASSES]]
    if any(plain):
        return ".".join([name, *filter(None, plain)])
    if tag not in _PARTS_OF_TEXT:
        plain = _plain(node.getattr("id") or "")
        if plain:
            return f"{name}#{plain}"
    return name


def _plain(text: str) -> str:
    """Return a name without what differs from one page to another: its numbers."""
    return _DIGITS.sub("0", _ODD.sub("", text[:LONGEST_NAME])).lower()
