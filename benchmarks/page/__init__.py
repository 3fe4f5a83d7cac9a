"""The leaderboard as one HTML file that needs nothing else, not even a network.

`render` puts a board's figures, the styles and the code into the template. The page
may run its own code alone: a Content-Security-Policy names it by checksum and forbids
everything else. Figures go in as JSON and come out as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = (
    "parts",
    "tables",
    "charts",
    "comparison",
    "crawl",
    "map",
    "replay",
    "page",
)  # in the order of use
DIGITS = 5  # of figures on the page, which no reader needs more of


def render(board: Mapping[str, Any]) -> str:
    """Return the page of a board.

    Parts of the board that are missing or empty do not show.
    """
    style = _read("page.css")
    code = "".join(_read(f"{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{code}}})();\n'
    parts = {
        "policy": _policy(script, style),
        "style": style,
        "data": _data(board),
        "script": script,
    }
    return re.sub(
        r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _read("page.html").rstrip("\n")
    )


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """Allow this script and this style, and nothing else from anywhere."""
    rules = (
        "default-src 'none'",
        f"script-src '{_checksum(script)}'",
        f"style-src '{_checksum(style)}'",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _checksum(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _data(board: Mapping[str, Any]) -> str:
    """Return the board as JSON that cannot end the tag that it stands in."""
    text = json.dumps(
        _short(board), allow_nan=False, ensure_ascii=True, separators=(",", ":")
    )
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _short(value: Any) -> Any:
    """Return a value with short numbers; what is no number in JSON becomes null."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        digits = max(DIGITS, 1 + math.ceil(math.log10(max(1.0, abs(value)))))
        return int(value) if value.is_integer() else float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {str(key): _short(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_short(item) for item in value]
    raise TypeError(f"a {type(value).__name__} cannot stand on the page: {value!r}")
