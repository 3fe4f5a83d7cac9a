"""``record live`` against a server on the loopback address."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.live_server import Page, Site, page, redirect, zipped

pytest.importorskip("scrapy")

from gym_webforage.record.live import LiveOptions, due, record_live
from gym_webforage.record.live_frontier import Frontier, Hosts, links, tidy
from gym_webforage.record.live_guard import Guard
from gym_webforage.record.live_state import State
from gym_webforage.record.live_warc import Outcome, RoundFile, mend, outcomes


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as served:
        yield served


def options(site: Site, **more: Any) -> LiveOptions:
    given: dict[str, Any] = {
        "urls": (site.url(),),
        "contact": "test@example.org",
        "delay": 0.0,
        "timeout": 5.0,
        "retries": 0,
        "allow_private_hosts": ("127.0.0.1",),
    }
    return LiveOptions(**{**given, **more})


def captured(folder: Path, number: int = 0) -> dict[str, Outcome]:
    """Return a round's outcomes by path; each URL must be there once."""
    found = list(outcomes(State(folder).warc(number)))
    by_path = {_path(outcome.url): outcome for outcome in found}
    assert len(by_path) == len(found)
    return by_path


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3] if url.startswith("http://127.0.0.1") else url


# --- what is recorded


def test_everything_that_goes_wrong(site: Site, tmp_path: Path) -> None:
    long = b"<html>" + b"x" * 30_000
    site.pages = {
        "/robots.txt": Page("User-agent: *\nDisallow: /secret\n"),
        "/": page(
            "/secret/plans",
            "/moved",
            "/loop-a",
            "/slow",
            "/error",
            "/reset",
            "/missing",
            "/long",
            "/zipped",
            "/bomb",
            "/lost",
            "/paper.pdf",
            "/to-file",
            "/to-private",
            "/to-name",
            "mailto:me@example.org",
            "javascript:void(0)",
            "http://elsewhere.example/",
            "#here",
            "http://[broken/",
        ),
        "/moved": redirect("/target", 301),
        "/target": page(),
        "/loop-a": redirect("/loop-b"),
        "/loop-b": redirect("/loop-a"),
        "/slow": Page("late", wait=3.0),
        "/error": Page("oops", status=500),
        "/reset": Page(reset=True),
        "/long": Page(long),
        "/zipped": zipped(b'<a href="/from-zipped">x</a>'),
        "/from-zipped": page(),
        "/bomb": zipped(b"y" * 5_000_000),
        "/lost": Page("only this", claim=1000),
        "/paper.pdf": Page(b"%PDF", headers={"Content-Type": "application/pdf"}),
        "/to-file": redirect("file:///etc/passwd"),
        "/to-private": redirect("http://169.254.169.254/latest/meta-data"),
        "/to-name": redirect(site.url("/by-name", host="localhost")),
    }
    chosen = options(
        site, hosts=("127.0.0.1", "localhost"), timeout=0.8, page_bytes=20_000
    )
    result = record_live(chosen, tmp_path)
    found = captured(tmp_path)
    status = {path: outcome.status for path, outcome in found.items()}

    assert "/secret/plans" not in site.paths
    assert found["/secret/plans"].error == "forbidden by robots.txt"
    assert (status["/moved"], status["/target"]) == (301, 200)
    assert found["/moved"].header("location") == "/target"
    assert (status["/loop-a"], status["/loop-b"]) == (302, 302)
    assert site.paths.count("/loop-a") == 1
    assert "Timeout" in found["/slow"].error
    assert (status["/error"], found["/error"].body) == (500, b"oops")
    assert (status["/reset"], bool(found["/reset"].error)) == (0, True)
    assert status["/missing"] == 404
    assert found["/long"].body == long[:20_000]
    assert found["/long"].truncated == "length"
    assert status["/from-zipped"] == 200
    assert found["/zipped"].body == b'<a href="/from-zipped">x</a>'
    assert found["/bomb"].body == b"y" * 20_000
    assert found["/bomb"].truncated == "length"
    assert found["/lost"].body == b"only this"
    assert found["/lost"].truncated == "disconnect"
    assert found["/paper.pdf"].body == b"%PDF"

    # Neither a file, nor a private address, nor a name that leads to one.
    assert "only http and https" in found["file:///etc/passwd"].error
    private = found["http://169.254.169.254/latest/meta-data"]
    assert "private address" in private.error
    named = found[site.url("/by-name", host="localhost")]
    assert named.error == "refused: localhost leads to a private address"
    assert not any("localhost" in a.headers.get("Host", "") for a in site.asked)
    assert not any("elsewhere" in path for path in found)

    assert result.failed == 2 and result.forbidden == 4
    assert result.pages == len([s for s in status.values() if s])
    agents = {a.headers["User-Agent"] for a in site.asked}
    assert len(agents) == 1 and "test@example.org" in agents.pop()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "127.1", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_private_start_is_refused(host: str, site: Site, tmp_path: Path) -> None:
    url = site.url(host=host)
    chosen = options(site, urls=(url,), allow_private_hosts=())
    try:
        result = record_live(chosen, tmp_path)
    except ValueError as error:
        assert "private address" in str(error)
    else:  # a number is a name, until it is resolved
        assert result.pages == 0
        (outcome,) = outcomes(result.warcs[0])
        assert "private address" in outcome.error
    assert not site.asked


def test_private_addresses_may_be_allowed(site: Site, tmp_path: Path) -> None:
    site.pages = {"/": page()}
    chosen = options(
        site,
        urls=(site.url(host="localhost"),),
        allow_private_hosts=(),
        allow_private=True,
    )
    assert record_live(chosen, tmp_path).pages == 1


def test_crawl_delay_and_redirected_robots(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "/robots.txt": redirect("/rules.txt"),
        "/rules.txt": Page(
            "User-agent: other\nDisallow: /\n\n"
            "User-agent: webforage\nCrawl-delay: 0.5\nDisallow: /no\n"
        ),
        "/": page("/a", "/no"),
        "/a": page(),
    }
    record_live(options(site), tmp_path)
    times = [a.time for a in site.asked]
    assert [a.path for a in site.asked] == ["/robots.txt", "/rules.txt", "/", "/a"]
    assert times[3] - times[2] > 0.45


def test_delay_of_our_own(site: Site, tmp_path: Path) -> None:
    site.pages = {"/": page("/a", "/b"), "/a": page(), "/b": page()}
    record_live(options(site, delay=0.3), tmp_path)
    times = [a.time for a in site.asked]
    assert len(times) == 4
    assert min(b - a for a, b in pairwise(times)) > 0.25


def test_no_robots_no_crawl(site: Site, tmp_path: Path) -> None:
    site.pages = {"/robots.txt": Page("oops", status=503), "/": page()}
    assert record_live(options(site), tmp_path).pages == 0
    assert site.paths == []
    assert captured(tmp_path)["/"].error == "robots.txt cannot be had: status 503"


def test_retries(site: Site, tmp_path: Path) -> None:
    # Twisted itself tries again, once, where a connection was used before.
    tries = iter([Page(reset=True), Page(reset=True), page()])
    site.pages = {"/": page("/a", "/b"), "/b": page()}
    site.other = lambda path: next(tries) if path == "/a" else Page(status=404)
    record_live(options(site, retries=1), tmp_path)
    assert site.paths == ["/", "/a", "/a", "/b", "/a"]
    assert captured(tmp_path)["/a"].status == 200


def test_busy_servers_are_asked_less(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "/": page("/busy", "/b"),
        "/busy": Page("later", status=503, headers={"Retry-After": "1"}),
        "/b": page(),
    }
    record_live(options(site), tmp_path)
    assert captured(tmp_path)["/busy"].status == 503
    assert site.asked[-1].time - site.asked[-2].time > 0.9


def test_nothing_is_tried_again(site: Site, tmp_path: Path) -> None:
    site.pages = {"/": Page(reset=True)}
    assert record_live(options(site), tmp_path).pages == 0
    site.pages = {"/": page()}
    assert record_live(options(site), tmp_path).pages == 1


def test_hosts_are_crawled_at_the_same_time(site: Site, tmp_path: Path) -> None:
    site.other = web
    urls = site.url("/0", host="127.0.0.1"), site.url("/0", host="localhost")
    chosen = options(
        site, urls=urls, allow_private_hosts=("127.0.0.1", "localhost"), max_pages=40
    )
    assert record_live(chosen, tmp_path).pages == 40
    assert site.most_at_once == 2
    found = [o.url for o in outcomes(State(tmp_path).warc(0))]
    assert len(set(found)) == 40
    assert 10 < sum("localhost" in url for url in found) < 30


# --- limits


def trap(path: str) -> Page:
    """Lead ever deeper, with more and more links."""
    return page(*(f"{path.rstrip('/')}/{i}" for i in range(5)))


def test_trap_ends_at_page_limit_breadth_first(site: Site, tmp_path: Path) -> None:
    site.other = trap
    result = record_live(options(site, max_pages=20), tmp_path)
    assert result.pages == 20
    depths = [path.rstrip("/").count("/") for path in site.paths]
    assert len(depths) == 20 and depths == sorted(depths)
    assert State(tmp_path).summary(0)["ended"] == "pages"


def test_endless_redirects_end(site: Site, tmp_path: Path) -> None:
    site.other = lambda path: (
        Page(status=404) if "robots" in path else redirect(path + "x")
    )
    result = record_live(options(site), tmp_path)
    assert result.pages == 11


@pytest.mark.parametrize("limit", ["depth", "bytes", "time"])
def test_other_limits(limit: str, site: Site, tmp_path: Path) -> None:
    site.other = trap
    more = {"depth": 1, "max_bytes": 3_000, "max_time": 0.7}
    name = {"depth": "depth"}.get(limit, f"max_{limit}")
    if limit == "time":
        site.other = lambda path: Page(trap(path).body, wait=0.1)
    result = record_live(options(site, **{name: more[name]}), tmp_path)
    if limit == "depth":
        assert result.pages == 6
    elif limit == "bytes":
        assert 1_500 < result.bytes <= 3_000
    else:
        assert 2 <= result.pages <= 9
    ended = "finished" if limit == "depth" else limit
    assert State(tmp_path).summary(0)["ended"] == ended


# --- rounds


def test_rounds_add_versions(site: Site, tmp_path: Path) -> None:
    counter = iter(range(100))
    site.pages = {"/fixed": page()}
    site.other = lambda path: (
        Page(status=404)
        if "robots" in path
        else page("/fixed", text=f"version {next(counter)}")
    )
    result = record_live(options(site, every=2.0, period=3.0), tmp_path)
    assert result.rounds == 2
    first, second = captured(tmp_path, 0), captured(tmp_path, 1)
    assert b"version 0" in first["/"].body and b"version 1" in second["/"].body
    assert first["/fixed"].body == second["/fixed"].body
    began = [a.time for a in site.asked if a.path == "/robots.txt"]
    assert 1.0 < began[1] - began[0] < 4.0
    before = len(site.asked)
    again = record_live(None, tmp_path)  # complete: nothing is asked for again
    assert (again.rounds, len(site.asked)) == (2, before)


def test_due() -> None:
    assert due(0, 0, 0, now=5, done=0) == 5
    assert due(0, 0, 0, now=5, done=1) == -1
    assert due(100, 10, 30, now=105, done=1) == 110
    assert due(100, 10, 30, now=125.5, done=1) == -1
    assert due(100, 10, 40, now=111, done=1) == 120  # the one at 110 was missed


# --- stopping and going on

RUN = """
import sys
from pathlib import Path
from gym_webforage.record.live import LiveOptions, record_live
import json
options = LiveOptions.from_json(json.loads(sys.argv[1]))
def tell(facts):
    print(facts.get("pages", 0), flush=True)
result = record_live(options, sys.argv[2], tell=tell)
print("interrupted" if result.interrupted else "complete", flush=True)
"""


def start(chosen: LiveOptions, folder: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", RUN, json.dumps(chosen.to_json()), str(folder)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], pages: int) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip().isdecimal() and int(line) >= pages:
            return int(line)
    raise AssertionError("ended too early")


def web(path: str) -> Page:
    """A web of 40 pages in which each links to three others."""
    if "robots" in path:
        return Page(status=404)
    number = int(path.strip("/") or 0)
    found = page(*(f"/{(number * 3 + i) % 40}" for i in range(1, 4)), text="x" * 3000)
    found.wait = 0.02
    return found


@pytest.mark.parametrize(("victim", "kills"), [("parent", (5, 12)), ("round", (8,))])
def test_kill_9_loses_nothing(
    victim: str, kills: tuple[int, ...], site: Site, tmp_path: Path
) -> None:
    site.other = web
    chosen = options(site, max_pages=30)
    unbroken, folder = tmp_path / "unbroken", tmp_path / "broken"
    record_live(chosen, unbroken)
    assert site.most_at_once == 1

    saved = 0
    for kill_at in kills:
        process = start(chosen, folder)
        told = wait_for(process, kill_at)
        if victim == "parent":
            os.kill(process.pid, signal.SIGKILL)
        else:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        kept = sum(1 for _ in outcomes(State(folder).warc(0)))
        assert kept >= told > saved  # all that was reported as saved is there
        saved = told
    file = State(folder).warc(0)
    with file.open("ab") as stream:  # as if killed in the middle of a record
        stream.write(file.read_bytes()[-200:-100])
    site.asked.clear()
    result = record_live(chosen, folder)
    assert result.pages == 30 and result.rounds == 1
    assert len(site.paths) <= 30 - saved
    one, other = captured(unbroken), captured(folder)
    assert list(one) == list(other)
    assert [a.body for a in one.values()] == [a.body for a in other.values()]


def test_ctrl_c_keeps_everything(site: Site, tmp_path: Path) -> None:
    site.other = web
    chosen = options(site, max_pages=30)
    process = start(chosen, tmp_path)
    told = wait_for(process, 5)
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=20)[0]
    assert "interrupted" in rest
    assert process.returncode == 0
    assert told <= len(captured(tmp_path)) < 30
    assert len(captured(tmp_path)) == len(site.paths)  # the page under way is there
    assert record_live(None, tmp_path).pages == 30
    assert len(site.paths) == 30


def test_full_disk_ends_a_round_and_loses_nothing(site: Site, tmp_path: Path) -> None:
    site.other = lambda path: Page(
        web(path).body if "robots" not in path else "", headers={"X-Id": path * 50}
    )
    chosen = options(site, max_pages=20)
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (5000, -1))\n"
    words = [sys.executable, "-c", limited + RUN, json.dumps(chosen.to_json())]
    ended = subprocess.run(
        [*words, str(tmp_path)], capture_output=True, text=True, timeout=20
    )
    assert "round 1 could not go on" in ended.stderr
    kept = len(captured(tmp_path))
    assert 0 < kept < 20
    site.asked.clear()
    assert record_live(None, tmp_path).pages == 20
    assert len(site.paths) == 20 - kept == len(captured(tmp_path)) - kept


def test_two_at_once_are_refused(site: Site, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("gym_webforage.record.live_state.LOCK_PATIENCE", 0.0)
    with State(tmp_path).locked(), pytest.raises(OSError, match="under way"):
        record_live(options(site), tmp_path)


def test_other_options_are_refused(site: Site, tmp_path: Path) -> None:
    site.pages = {"/": page()}
    record_live(options(site), tmp_path / "state")
    with pytest.raises(ValueError, match="depth is 16 there and 3 here"):
        record_live(options(site, depth=3), tmp_path / "state")
    record_live(options(site, contact="other@example.org"), tmp_path / "state")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    with pytest.raises(FileExistsError, match="no state of a recording"):
        record_live(options(site), tmp_path / "full")
    with pytest.raises(FileNotFoundError, match="no recording to resume"):
        record_live(None, tmp_path / "nothing")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"urls": ()}, "at least one URL"),
        ({"urls": ("file:///etc/passwd",)}, "only http and https"),
        ({"urls": ("http://10.1.2.3/",)}, "private address"),
        ({"urls": ("http://x:y/",)}, "no valid URL"),
        ({"contact": " "}, "contact"),
        ({"contact": "me\r\nX: y"}, "contact"),
        ({"max_pages": 0}, "max_pages is 0"),
        ({"delay": float("nan")}, "delay is nan"),
        ({"every": 5.0}, "go together"),
    ],
)
def test_wrong_options(wrong: Any, message: str, site: Site, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        record_live(options(site, **wrong), tmp_path / "state")
    assert not (tmp_path / "state").exists()


# --- the command


def command(*words: str) -> Any:
    import typer
    from typer.testing import CliRunner

    from gym_webforage.cli.record_live import live

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(live)
    return CliRunner().invoke(app, words)


def test_command_makes_a_trace(site: Site, tmp_path: Path) -> None:
    from gym_webforage.trace import load_trace

    site.pages = {"/": page("/a", "/b", text="hello world"), "/a": page("/")}
    out = tmp_path / "mine-v0"
    allowed = ("--contact", "x@example.org", "--allow-private-host", "127.0.0.1")
    ended = command(site.url(), "--out", str(out), "--delay", "0", *allowed)
    assert ended.exit_code == 0, ended.output
    assert "3 pages" in ended.stdout and "round 1: 3 pages" in ended.stderr
    trace = load_trace(str(out))
    assert trace.meta["roots"] == [site.url()]
    assert trace.counts["versions"] == 3
    assert trace.meta["source"] == site.url()
    before = len(site.asked)
    again = command("--resume", "--out", str(out), "--force")
    assert again.exit_code == 0 and len(site.asked) == before
    assert "exists" in command("--resume", "--out", str(out)).stderr


def test_command_says_why_there_is_little(site: Site, tmp_path: Path) -> None:
    allowed = ("--contact", "x@example.org", "--allow-private-host", "127.0.0.1")
    site.pages = {"/": redirect("http://www.example.org/")}
    ended = command(site.url(), "--out", str(tmp_path / "a-v0"), *allowed)
    assert "www.example.org is not among the hosts to crawl" in ended.stderr
    site.pages = {"/robots.txt": Page("User-agent: *\nDisallow: /")}
    ended = command(site.url(), "--out", str(tmp_path / "b-v0"), *allowed)
    assert ended.exit_code == 2
    assert "forbidden by robots.txt" in ended.stderr
    assert "no page could be recorded" in ended.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["http://x.example/", "--out", "OUT"], "contact must be"),
        (["file:///x", "--out", "OUT", "--contact", "me"], "only http and https"),
        (["http://127.0.0.1/", "--out", "OUT", "--contact", "me"], "private address"),
        (["--resume", "--out", "OUT"], "no recording to resume"),
        (["--resume", "http://x.example/", "--out", "OUT"], "leave them out"),
        (["http://x/", "--out", "OUT", "--max-bytes", "x"], "--max-bytes is 'x'"),
        (["http://x/", "--out", "OUT", "--every", "1x"], "--every is '1x'"),
    ],
)
def test_command_explains(words: list[str], message: str, tmp_path: Path) -> None:
    out = str(tmp_path / "mine-v0")
    ended = command(*(out if word == "OUT" else word for word in words))
    assert ended.exit_code == 2
    assert message in ended.stderr and len(ended.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


# --- the parts


def test_damaged_files_are_mended(tmp_path: Path) -> None:
    path = tmp_path / "round.warc.gz"
    file = RoundFile(path, {"software": "test"})
    ends = []
    for number in range(4):
        headers = [("Content-Type", "text/html"), ("X-Ünusual", "wert é")]
        file.append(Outcome(f"http://x/{number}", 200, headers, b"body" * number))
        ends.append(path.stat().st_size)
    file.append(Outcome("http://x/bad", error="a\r\nb"))
    file.close()
    whole = path.read_bytes()
    assert mend(path) == 0 and path.read_bytes() == whole
    found = list(outcomes(path))
    assert found[3].body == b"body" * 3 and found[3].header("x-ünusual") == "wert é"
    assert found[4].error == "a b"
    for cut in (ends[2] + 1, ends[2] + 9, ends[2] + 60, ends[3] - 9, ends[3] - 1):
        path.write_bytes(whole[:cut])
        assert mend(path) == cut - ends[2]
        assert path.read_bytes() == whole[: ends[2]]
    assert not list(tmp_path.glob("*.damaged*"))
    path.write_bytes(whole[: ends[1]] + bytes(500))
    assert mend(path) == 500
    assert len(list(outcomes(path))) == 2
    assert next(tmp_path.glob("*.damaged*")).read_bytes() == bytes(500)
    assert mend(tmp_path / "missing") == 0


def test_fastwarc_reads_our_files(site: Site, tmp_path: Path) -> None:
    from fastwarc import ArchiveIterator

    site.pages = {"/": page("/a"), "/a": zipped(b"content")}
    record_live(options(site), tmp_path)
    with State(tmp_path).warc(0).open("rb") as stream:
        records = [
            (
                record.headers.get("WARC-Target-URI"),
                record.http_headers.status_code,
                record.reader.read(),
            )
            for record in ArchiveIterator(stream)
            if record.is_http
        ]
    assert [(url, status) for url, status, _ in records] == [
        (site.url("/"), 200),
        (site.url("/a"), 200),
    ]
    assert records[1][2] == b"content"


def test_links() -> None:
    html = [("Content-Type", "text/html")]
    body = (
        b'<base href="/base/"><meta http-equiv=refresh content="0;url=next">'
        b"<a href=a#x>1</a><a href=' a '>2</a><area href=b><frame src=c>"
        b"<iframe src='//other.example/d'></iframe><a href='\xc3\xa9t\xc3\xa9'>e</a>\0"
    )
    found, moved = links(Outcome("http://x.example/p/q", 200, html, body))
    assert not moved
    assert found == [
        "http://x.example/base/next",
        "http://x.example/base/a",
        "http://x.example/base/b",
        "http://x.example/base/c",
        "http://other.example/d",
        "http://x.example/base/%C3%A9t%C3%A9",
    ]
    assert links(Outcome("http://x/", 200, [("Content-Type", "image/png")], body)) == (
        [],
        False,
    )
    assert links(Outcome("http://x/", 301, [])) == ([], True)
    for junk in (b"<", b"<a href=", b"\0" * 100, b"<a" * 5000, bytes(range(256))):
        links(Outcome("http://x/", 200, html, junk))


def test_tidy() -> None:
    assert tidy("http://user:pw@X.example/a/../b") == "http://x.example/b"
    assert tidy("https://x:443") == "https://x/"
    assert tidy("http://[::1]:8080//a") == "http://[::1]:8080//a"


def test_frontier_is_rebuilt() -> None:
    html = [("Content-Type", "text/html")]

    def fill(answered: list[Outcome]) -> Frontier:
        frontier = Frontier(Hosts(["x.example", "*.y.example"]), 3)
        frontier.add("http://x.example/", 0)
        for outcome in answered:
            frontier.replay(outcome)
        return frontier

    live, answered = fill([]), []
    for number in range(30):
        item = live.take()
        assert item is not None
        targets = [
            f"http://{h}/{number % 7}{i}"
            for i in range(3)
            for h in ("x.example", "a.y.example", "y.example", "z.example")
        ]
        body = "".join(f"<a href='{t}'>x</a>" for t in targets).encode()
        outcome = Outcome(item.url, 200, html, body)
        live.done(item, outcome)
        answered.append(outcome)
    again = fill(answered)
    assert again.waiting == live.waiting and again.seen == live.seen
    assert not any("z.example" in url for url in again.seen)


def test_guard_sees_through_disguises() -> None:
    guard = Guard.of(False, ["allowed.example"])
    for url in (
        "http://10.0.0.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "http://[2002:7f00:1::]/",
        "ftp://example.org/",
        "gopher://example.org/",
        "//example.org/",
        "http:///path",
    ):
        assert guard.objection(url).startswith("refused"), url
    assert not guard.objection("http://93.184.215.14/")
    assert not guard.objection("http://name.example/")
    assert guard.allows("allowed.example", "10.0.0.1")
    assert not guard.allows("name.example", "10.0.0.1")
    assert "leads to a private address" in guard.objection("http://name.example/")
