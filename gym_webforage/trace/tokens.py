"""Words of a text, for any European language: one rule for every text of a trace."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 30  # characters of a token

_WORD = re.compile(r"\w\w+")
_SOFT_HYPHEN = "\xad"


def tokenise(text: str) -> list[str]:
    r"""Return the words of ``text`` in order, in lower case.

    A word is an unbroken run of letters and digits of any script, 2 to 30 characters
    long, with at least one that is no digit. Composed and decomposed accents are the
    same word, and a soft hyphen does not divide one.

    >>> tokenise("L'été à Zürich: 1848_info, 4x4 und Straßen\xadbahn")
    ['été', 'zürich', 'info', '4x4', 'und', 'straßenbahn']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.replace(_SOFT_HYPHEN, ""))
    # A plain pattern, and digits sorted out after it, is faster than an exact one.
    return [
        word
        for word in _WORD.findall(text.lower().replace("_", " "))
        if len(word) <= LONGEST and not word.isdigit()
    ]
