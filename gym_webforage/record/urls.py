"""One form for each URL: the rules by which two addresses count as the same page.

1. Blanks and control characters around the address go, tabs and line ends inside too;
   a relative address is resolved against its base.
2. The scheme is http, https, ftp, or file with a host; anything else is no page. An
   address longer than 2,000 characters or with a broken host or port is none either.
3. Scheme and host are in lower case, a host's final dot goes, a host in other letters
   is written in its ASCII form (IDNA); user names and passwords are dropped.
4. The default port of the scheme is dropped.
5. The fragment (``#...``) is dropped, and an empty query (``?``).
6. Percent-encoding: letters, digits and ``-._~`` stand for themselves, hexadecimal
   digits are upper case, anything that may not stand in a URL is encoded as UTF-8, and
   a ``%`` that begins no code is itself encoded. A backslash counts as a slash.
7. ``.`` and ``..`` in the path are resolved; an empty path is ``/``.
8. An index page (``INDEX_PAGES``) is its folder, unless it has a query.

Nothing else: ``www.``, query parameters, their order, and letter case in paths can
all make a difference, and a recording cannot tell whether they do.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import SplitResult, unquote, urlsplit

from gym_webforage.trace.tokens import tokenise

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "file": None}
INDEX_PAGES = frozenset(
    "index.html index.htm index.shtml index.xhtml index.php "
    "default.html default.htm default.asp default.aspx welcome.html".split()
)
LONGEST_URL = 2000

_UNRESERVED = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
)
_IN_LINE = re.compile(r"[\t\r\n]")
_AROUND = "".join(map(chr, range(33)))
_HOST = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_-])?|\[[0-9a-f:.]+\]")
_TO_ENCODE = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?]")
_CLEAN_PATH = re.compile(r"/(?:[A-Za-z0-9\-_~!$&'()*+,;=:@/]|\.(?![./]))*")
_PLAIN = re.compile(r"(?!//)[A-Za-z0-9\-._~!$&'()*+,;=@/%]+")
_ENDING = re.compile(r"(\.[A-Za-z][A-Za-z0-9]{0,4}){1,2}$")


def normalise(url: str, base: str | None = None) -> str | None:
    """Return the one form of ``url``, or None if it is the address of no page.

    ``base`` is normalised already.

    >>> normalise("HTTP://Example.COM:80/a/../b/index.html#top")
    'http://example.com/b/'
    >>> normalise("../c d?q=%7e", "http://example.com/a/b/")
    'http://example.com/a/c%20d?q=~'
    >>> normalise("mailto:me@example.com") is None
    True
    """
    if base is not None:
        plain = url.partition("#")[0]
        if _PLAIN.fullmatch(plain):  # most links: a path and nothing else
            origin, folder = _origin_and_folder(base)
            path = plain if plain[0] == "/" else folder + plain
            made = origin + _folder_of_index(_path(path))
            return made if len(made) <= LONGEST_URL else None
    return _normalised(url, base)


@lru_cache(1 << 12)
def _origin_and_folder(base: str) -> tuple[str, str]:
    """Return the parts of a normalised URL that its links begin with."""
    scheme, _, rest = base.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}", (slash + path).rpartition("/")[0] + "/"


def _folder_of_index(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/" if name.lower() in INDEX_PAGES else path


def _normalised(url: str, base: str | None) -> str | None:
    url = _IN_LINE.sub("", url.strip(_AROUND))
    if len(url) > LONGEST_URL:
        return None
    try:
        parts = urlsplit(url.replace("\\", "/"))
        if base is not None:
            parts = _resolved(parts, urlsplit(base))
        scheme, port, host = parts.scheme, parts.port, parts.hostname
    except ValueError:  # a broken IPv6 address or port
        return None
    if scheme not in DEFAULT_PORTS or not host:
        return None
    host = _host(host)
    if host is None:
        return None
    if port is not None and port != DEFAULT_PORTS[scheme]:
        host = f"{host}:{port}"
    path = _path(parts.path)
    query = _encoded(parts.query)
    if not query:
        path = _folder_of_index(path)
    made = f"{scheme}://{host}{path}" + (f"?{query}" if query else "")
    return made if len(made) <= LONGEST_URL else None


def _resolved(parts: SplitResult, base: SplitResult) -> SplitResult:
    """Complete a relative address. `urljoin` would drop empty parts of the path."""
    if parts.netloc or parts.scheme not in ("", base.scheme):
        return parts._replace(scheme=parts.scheme or base.scheme)
    path, query = parts.path, parts.query
    if not path:
        path, query = base.path, query or base.query
    elif not path.startswith("/"):
        path = f"{base.path.rpartition('/')[0]}/{path}"
    return SplitResult(base.scheme, base.netloc, path, query, "")


def _host(host: str) -> str | None:
    if ":" in host:
        host = f"[{host.lower()}]"
    elif "%" in host:
        host = unquote(host).lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return None
    host = host.lower().rstrip(".")
    return host if len(host) <= 253 and _HOST.fullmatch(host) else None


def _path(path: str) -> str:
    if not path:
        return "/"
    if _CLEAN_PATH.fullmatch(path) and not path.endswith("."):
        return path  # most of them: nothing to encode, no dot segment
    path = _encoded(path).replace("?", "%3F")
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1:] in ([".."], ["."]):
        kept.append("")
    return "/" + "/".join(kept)


def _encoded(text: str) -> str:
    return _TO_ENCODE.sub(_encode, text)


def _encode(found: re.Match[str]) -> str:
    piece = found.group()
    if len(piece) == 3:  # %xx
        meant = chr(int(piece[1:], 16))
        return meant if meant in _UNRESERVED else piece.upper()
    return "".join(f"%{byte:02X}" for byte in piece.encode(errors="replace"))


def site_of(url: str) -> str:
    """Return the host of a normalised URL, with its port if it has one.

    >>> site_of("http://example.com:8080/a")
    'example.com:8080'
    """
    return url.split("/", 3)[2]


def depth_of(url: str) -> int:
    """Return how many parts a normalised URL's path has; a query adds one.

    >>> depth_of("http://example.com/"), depth_of("http://example.com/a/b?c")
    (0, 3)
    """
    path, _, query = url.partition("?")
    parts = path.split("/")[3:]
    return len([part for part in parts if part]) + bool(query)


def url_words(url: str, *, ending: bool = True) -> list[str]:
    """Return the words of a normalised URL; without the file ending on demand.

    >>> url_words("http://www.cs.example.edu/~ann/Q-learning.ps.gz")
    ['cs', 'example', 'edu', 'ann', 'learning', 'ps', 'gz']
    >>> url_words("http://www.cs.example.edu/~ann/Q-learning.ps.gz", ending=False)
    ['cs', 'example', 'edu', 'ann', 'learning']
    """
    address, _, query = url.split("://", 1)[-1].partition("?")
    host, _, path = address.partition("/")
    host = host.removeprefix("www.")
    if not ending:
        path = _ENDING.sub("", path)
    return tokenise(unquote(f"{host}/{path} {query}", errors="replace"))
