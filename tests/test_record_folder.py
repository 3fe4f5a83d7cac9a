from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("resiliparse", reason="needs the extra `record`")

from gym_webforage.record import Builder, Options, RecordError
from gym_webforage.record.folder import record_folder
from gym_webforage.record.git import record_git
from gym_webforage.trace import Trace
from gym_webforage.trace.trace import to_iso

BASE = "https://docs.example/"


def days(trace: Trace) -> dict[str, list[tuple[str, int, list[str]]]]:
    """Return each URL's versions: day, status and the URLs linked to."""
    found: dict[str, list[tuple[str, int, list[str]]]] = {}
    for number, url in enumerate(trace.urls):
        low, high = trace.version_start[number : number + 2]
        found[url.removeprefix(BASE)] = [
            (
                to_iso(int(trace.version_seen[v]))[:10],
                int(trace.version_status[v]),
                [trace.urls[int(t)].removeprefix(BASE) for t in trace.links_of(v)],
            )
            for v in range(low, high)
        ]
    return found


# --- a folder


def folder_trace(folder: Path, **given: Any) -> Trace:
    builder = Builder(Options("test-v0"))
    record_folder(folder, given.pop("base_url", BASE), builder, **given)
    return builder.finish()


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "index.html").write_text("<a href='sub%20dir/é.html'>x</a>")
    (tmp_path / "sub dir" / "é.html").write_text("<a href='../p.pdf'>x</a>")
    (tmp_path / "p.pdf").write_bytes(b"%PDF")
    (tmp_path / "page").write_text("<!doctype html><a href=/>x</a>")
    (tmp_path / ".hidden.html").write_text("no")
    (tmp_path / "style.css").write_text("p {}")
    (tmp_path / "link.html").symlink_to(tmp_path / "index.html")
    found = days(folder_trace(tmp_path, date="2024-05-01"))
    assert found == {
        "": [("2024-05-01", 200, ["sub%20dir/%C3%A9.html"])],
        "p.pdf": [("2024-05-01", 200, [])],
        "page": [("2024-05-01", 200, [""])],
        "sub%20dir/%C3%A9.html": [("2024-05-01", 200, ["p.pdf"])],
    }


def test_the_files_own_times_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("x")
    os.utime(tmp_path / "a.html", (10**9, 10**9))
    assert days(folder_trace(tmp_path))["a.html"][0][0] == "2000-01-01"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base_url": "docs"}, "base URL 'docs' is no web address"),
        ({"date": "May"}, "date 'May' is no ISO 8601 time"),
        ({}, "holds no readable file"),
    ],
)
def test_folder_errors(tmp_path: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        folder_trace(tmp_path, **given)
    with pytest.raises(RecordError, match="no directory"):
        folder_trace(tmp_path / "no")


# --- a git repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Four commits on four days: pages come, change, move and go."""
    folder = tmp_path / "my site.git"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    write(folder, "index.html", "<a href=docs/guide.md>guide</a>")
    write(folder, "docs/guide.md", "# Guide\n[more](more.rst)")
    write(folder, "docs/more.rst", "More\n====\n\n:doc:`guide`\n")
    write(folder, "code.py", "print()")
    commit(folder, "2024-01-01")
    write(folder, "docs/guide.md", "# Guide\n[home](../index.html) changed")
    commit(folder, "2024-01-02")
    (folder / "docs/more.rst").rename(folder / "docs/moved.rst")
    commit(folder, "2024-01-03")
    (folder / "docs/guide.md").unlink()
    commit(folder, "2024-01-02T12:00")  # a clock that goes wrong
    return folder


def git(folder: Path, *arguments: str, **environment: str) -> None:
    who = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments],
        cwd=folder,
        check=True,
        env={**os.environ, **who, **environment},
    )


def write(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def commit(folder: Path, date: str) -> None:
    git(folder, "add", "-A")
    time = f"{date}T00:00Z" if "T" not in date else f"{date}Z"
    times = {"GIT_COMMITTER_DATE": time, "GIT_AUTHOR_DATE": time}
    git(folder, "commit", "-qm", "x", **times)


def git_trace(repository: Path, **given: Any) -> Trace:
    builder = Builder(Options("test-v0", **given.pop("options", {})))
    record_git(repository, builder, **{"base_url": BASE, **given})
    return builder.finish()


def test_git(repository: Path) -> None:
    one, two, three = "2024-01-01", "2024-01-02", "2024-01-03"
    assert days(git_trace(repository, branch="trunk")) == {
        "docs/guide.md": [
            (one, 200, ["docs/more.rst"]),
            (two, 200, [""]),
            (three, 410, []),
        ],
        "docs/more.rst": [(one, 200, ["docs/guide.rst"]), (three, 410, [])],
        "": [(one, 200, ["docs/guide.md"])],
        "docs/moved.rst": [(three, 200, ["docs/guide.rst"])],
        "docs/guide.rst": [],
    }


def test_git_since_and_until(repository: Path) -> None:
    found = days(git_trace(repository, since="2024-01-01T12:00", until="2024-01-02"))
    assert [row[0] for row in found["docs/guide.md"]] == ["2024-01-01", "2024-01-02"]
    assert "docs/moved.rst" not in found
    late = days(git_trace(repository, since="2025-01-01"))
    assert late["docs/moved.rst"] == [("2025-01-01", 200, ["docs/guide.rst"])]


def test_git_part_of_a_repository(repository: Path) -> None:
    found = days(git_trace(repository, path="/docs/"))
    assert set(found) == {"", "guide.md", "more.rst", "moved.rst", "guide.rst"}
    assert found[""] == []  # the link out of the folder ends at its top


def test_git_names_a_site_after_the_repository(repository: Path) -> None:
    trace = git_trace(repository, base_url=None)
    assert list(trace.sites) == ["my-site.test"]


def test_git_long_pages_are_cut(repository: Path) -> None:
    write(repository, "long.html", "<p>" + "word " * 10_000)
    write(repository, "next.html", "<p>next")
    commit(repository, "2024-01-05")
    trace = git_trace(repository, options={"page_bytes": 1000})
    number = trace.urls.find(f"{BASE}long.html")
    version = int(trace.version_start[number])
    assert trace.version_bytes[version] == 50_003
    text = int(trace.version_text[version])
    assert trace.body_count[trace.body_start[text]] < 250


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"branch": "none"}, "no branch 'none'"),
        ({"branch": "--all"}, "no branch '--all'"),
        ({"until": "2023-01-01"}, "no commit in that time"),
        ({"since": "soon"}, "since is 'soon'"),
        ({"base_url": "docs"}, "is no web address"),
    ],
)
def test_git_errors(repository: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        git_trace(repository, **given)


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="does not exist"):
        git_trace(tmp_path / "no")
    with pytest.raises(RecordError, match="git rev-parse in"):
        git_trace(tmp_path)
