"""Markup on which a parser that follows the HTML standard would never end.

By the standard, formatting elements that are open are opened anew in each paragraph,
and each unclosed link is closed through all that is open: a page of a few megabytes
with nothing closed can take hours, or all memory.
"""

from __future__ import annotations

import re

FEWEST_TAGS = 2000  # below which no page is worth a look
MOST_OPEN = 1000

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_WHOLE_TAG = re.compile(
    r"</?([a-zA-Z][a-zA-Z0-9]*)(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*>?"
)
_UNREAD = re.compile(r"<(script|style)\b.*?(?:</\1|\Z)|<!--.*?(?:-->|\Z)", re.I | re.S)
# What needs no end tag; and what is kept of a tangled page.
_OPEN_ENDED = frozenset(
    "area base basefont body br col colgroup dd dt embed frame head hr html img input "
    "isindex li link meta option p param source tbody td tfoot th thead tr track wbr"
    "".split()
)
_KEPT = frozenset("a area base frame iframe img meta title".split())


def is_tangled(text: str) -> bool:
    """Say whether more elements are open inside each other than any page needs."""
    if text.count("<") < FEWEST_TAGS:
        return False
    depth: dict[str, int] = {}
    total = 0
    for end, name in _TAG.findall(_UNREAD.sub("", text)):
        if name in _OPEN_ENDED:
            continue
        name = name.lower()
        now = depth.get(name, 0)
        if not end and name not in _OPEN_ENDED:
            depth[name] = now + 1
            total += 1
            if total > MOST_OPEN:
                return True
        elif now:
            depth[name] = now - 1
            total -= 1
    return False


def untangled(text: str) -> str:
    """Return a page with nothing but its words and links."""
    text = _UNREAD.sub(" ", text)

    def kept(found: re.Match[str]) -> str:
        return found.group() if found.group(1).lower() in _KEPT else " "

    return _WHOLE_TAG.sub(kept, text)
