"""Makes the recorded traces of this folder again, from what is publicly archived.

Run from anywhere, with ``webforage`` installed (``gym-webforage[record]``)::

    apt-get download python3.11-doc=3.11.2-6+deb12u9
    python traces/make.py python-docs python3.11-doc_*.deb made/
    python traces/make.py sqlalchemy-docs FOLDER made/

The first unpacks a Debian package (``dpkg-deb``), the second takes SQLAlchemy's source
packages out of a folder (``sqlalchemy-1.0.0.tar.gz`` and so on, as pip downloads them)
and puts their manuals into a git repository, one commit a release. Then both
run the ``webforage`` commands that they print, and write them into the trace's card.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any

from gym_webforage.trace import load_trace, save_trace
from gym_webforage.trace.structure import structure

FACTS = (
    " The trace holds facts about the pages (addresses, links, times, sizes, numbers "
    "of words), no sentences."
)

PYTHON_DOCS = "https://docs.python.org/3.11/"
PYTHON_RECORD = [
    *("record", "folder", "html", "--out", "python-docs-v0"),
    *("--base-url", PYTHON_DOCS, "--date", "2026-10-07T12:35:00"),
    *("--world", "closed", "--vocabulary", "6000", "--page-links", "20000"),
    *("--labels", "labels.tsv"),
    *("--target-label", "Internet Data Handling"),
    *("--target-label", "Internet Protocols and Support"),
    *("--target-label", "Networking and Interprocess Communication"),
    "--drop-css",
    "div.related, div.sphinxsidebar, div.footer, div.mobile-nav",
]
PYTHON_CARD = {
    "title": "The Python 3.11 documentation",
    "description": "A static site of manuals. Labels: the chapter of the library "
    "reference or else the manual that a page belongs to, by its line of navigation, "
    "which is removed before the page is read, as are side bar and footer. Targets: "
    "the pages of the library's three chapters on networks and the internet. Indexes "
    "and the search page are left out. All pages are seen when the package was built.",
    "source": "Debian package python3.11-doc 3.11.2-6+deb12u9, published as "
    "https://docs.python.org/3.11/",
    "licence": "Documentation: PSF License Version 2 (examples also 0BSD), copyright "
    "Python Software Foundation." + FACTS,
}

RELEASES = "0.5.0 0.6.0 0.7.0 0.8.0 0.9.0 1.0.0 1.1.0 1.2.0 1.3.0 1.4.0 2.0.0 2.1.0"
TOPICS = ("asyncio", "connection pool", "inheritance", "json", "savepoint")
SQLALCHEMY_RECORD = [
    *("record", "git", "manual", "--out", "recorded-v0"),
    *("--base-url", "https://docs.sqlalchemy.org/en/latest/"),
    *("--world", "closed", "--vocabulary", "6000"),
    *(word for topic in TOPICS for word in ("--topic", topic)),
    "--drop-css",
    "#docs-top-navigation-container, #docs-top-navigation, #docs-sidebar, "
    "#docs-bottom-navigation, #docs-narrow-top-navigation, #docs-header, "
    "#docs-version-header, #docs-copyright, "
    "div.topnav, div.bottomnav, div.versionheader",
]
SQLALCHEMY_STATES = [
    *("trace", "states", "recorded-v0", "--out", "sqlalchemy-docs-v0"),
    *("--method", "svd", "--length", "16"),
]
SQLALCHEMY_CARD = {
    "title": "The SQLAlchemy documentation, 2009 to 2026",
    "description": "A manual that changes: the HTML in the source packages of all "
    "feature releases from 0.5.0 to 2.1.0, each a moment in time (the newest file time "
    "in the package). Pages that a release no longer has are gone. Navigation, side "
    "bars and footers are removed before pages are read; indexes, the search page and "
    "listings of source code are left out. Topics: words that the page has. States: "
    "SVD of the text, fitted on the releases up to 0.9.0.",
    "source": "Source packages of SQLAlchemy "
    + ", ".join(RELEASES.split())
    + ", published as https://docs.sqlalchemy.org/",
    "licence": "Documentation: MIT, copyright the SQLAlchemy authors and contributors."
    + FACTS,
}


def python_docs(package: Path, work: Path) -> Path:
    """Record the documentation in a Debian package."""
    unpacked = work / "package"
    subprocess.run(["dpkg-deb", "-x", package, unpacked], check=True)
    site = unpacked / "usr/share/doc/python3.11/html"
    rows = []
    for file in sorted(site.rglob("*.html")):
        path = file.relative_to(site)
        if path.name.startswith(("genindex", "search")) or path.parts[0][0] == "_":
            continue
        copy = work / "html" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        label = _chapter(file.read_text(encoding="utf-8"))
        if label:
            rows.append(f"{PYTHON_DOCS}{path.as_posix()}\t{label}\n")
    (work / "labels.tsv").write_text("".join(rows), encoding="utf-8")
    return _record(work, [PYTHON_RECORD], "python-docs-v0", PYTHON_CARD)


def _chapter(page: str) -> str | None:
    """Return the chapter of the library or else the manual that a page belongs to."""
    top = page.split('<div class="document">')[0]
    found = re.findall(r'nav-item nav-item-\d"><a[^>]*>(.*?)</a>', top)
    names = [unescape(re.sub("<[^>]*>", "", name)) for name in found]
    if len(names) > 1 and names[0] == "The Python Standard Library":
        return names[1]
    return names[0] if names else None


def sqlalchemy_docs(packages: Path, work: Path) -> Path:
    """Record the manuals in successive source releases."""
    manual = work / "manual"
    subprocess.run(["git", "init", "-q", manual], check=True)
    for release in RELEASES.split():
        _commit(manual, _package(packages, release))
    commands = [SQLALCHEMY_RECORD, SQLALCHEMY_STATES]
    return _record(work, commands, "sqlalchemy-docs-v0", SQLALCHEMY_CARD)


def _package(packages: Path, release: str) -> Path:
    name = f"sqlalchemy-{release}.tar.gz"
    for file in packages.iterdir():
        if file.name.lower() == name:
            return file
    raise SystemExit(f"{packages} has no {name}")


def _commit(manual: Path, package: Path) -> None:
    """Make the HTML of a release a commit, dated by the newest file in it."""
    for entry in manual.iterdir():
        if entry.is_dir() and entry.name != ".git":
            shutil.rmtree(entry)
        elif entry.is_file():
            entry.unlink()
    with tarfile.open(package) as archive:
        time = int(max(member.mtime for member in archive))
        for member in archive:
            parts = PurePosixPath(member.name).parts[1:]
            content = archive.extractfile(member)
            if content is None or not _is_page(parts):
                continue
            file = manual.joinpath(*parts[1:])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.read())
    identity = {"NAME": "make", "EMAIL": "make@example.org", "DATE": f"{time} +0000"}
    environment = dict(os.environ)
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_{key}": text for key, text in identity.items()}
    for command in (["add", "-A"], ["commit", "-q", "-m", package.name]):
        subprocess.run(["git", "-C", manual, *command], check=True, env=environment)


def _is_page(parts: tuple[str, ...]) -> bool:
    return (
        len(parts) > 1
        and parts[0] == "doc"
        and parts[1] not in ("_modules", "build")
        and ".." not in parts
        and parts[-1].endswith(".html")
        and parts[-1] not in ("genindex.html", "search.html")
    )


def _record(
    work: Path, commands: list[list[str]], name: str, card: dict[str, Any]
) -> Path:
    """Run the commands, and complete the card of what they made."""
    told = [shlex.join(["webforage", *command]) for command in commands]
    for command, text in zip(commands, told, strict=True):
        print(text, flush=True)
        program = Path(sys.executable).with_name("webforage")
        subprocess.run([program, *command], check=True, cwd=work)
    trace = load_trace(work / name)
    measured = {"measured": structure(trace)}
    recorder = " && ".join(told)
    complete = trace.renamed(name, **card, recorder=recorder, structure=measured)
    return save_trace(complete, work / name, overwrite=True)


def main(arguments: list[str]) -> None:
    """Make the trace that is asked for in the folder that is given last."""
    match arguments:
        case ["python-docs", package, work]:
            make = partial(python_docs, Path(package))
        case ["sqlalchemy-docs", packages, work]:
            make = partial(sqlalchemy_docs, Path(packages).absolute())
        case _:
            raise SystemExit(__doc__)
    folder = Path(work).absolute()
    folder.mkdir(parents=True)
    print(make(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
