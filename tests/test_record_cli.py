from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("fastwarc", reason="needs the extra `record`")

from gym_webforage.cli import app
from gym_webforage.trace import load_trace
from tests.record_samples import page, zipped

runner = CliRunner()


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    file = tmp_path / "crawl.warc.gz"
    bodies = {"": b"<a href=b>b</a> <a href=x.pdf>x</a>", "b": b"some words"}
    file.write_bytes(zipped(*(page(name, body) for name, body in bodies.items())))
    return file


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, ["record", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_warc(warc: Path, tmp_path: Path, cache: Path) -> None:
    out = tmp_path / "mine-v0"
    shown = run("warc", warc, "--targets", r"\.pdf$", "--licence", "CC0", "--out", out)
    assert "Trace('mine-v0', 3 URLs, 3 versions, 2 links) is in" in shown
    trace = load_trace(out)
    assert trace.url_target.sum() == 1
    assert trace.meta["licence"] == "CC0"
    assert trace.meta["recorder"].startswith("webforage record warc")
    shown = runner.invoke(app, ["info", str(out), "--json"]).output
    assert json.loads(shown)["counts"]["targets"] == 1


def test_same_input_same_files(warc: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run("warc", warc, "--name", "same-v0", "--out", tmp_path / name)
    one, two = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert one == two


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "index.html").write_text("<a href=x>x</a>")
    base = ("--base-url", "https://docs.example/")
    shown = run("folder", tmp_path / "html", *base, "--out", tmp_path / "docs-v0")
    assert "2 URLs, 1 versions, 1 links" in shown


def test_git(tmp_path: Path) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.md").write_text("[b](b.md)")
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        subprocess.run(["git", *who, *command], cwd=tmp_path / "site", check=True)
    shown = run("git", tmp_path / "site", "--out", tmp_path / "git-v0")
    assert "2 URLs, 1 versions, 1 links" in shown


def test_warnings_are_summed_up(warc: Path, tmp_path: Path) -> None:
    warc.write_bytes(warc.read_bytes() + b"garbage" * 9)
    shown = run("warc", warc, "--out", tmp_path / "mine-v0")
    assert "warning: 1 damaged stretches of a WARC file: skipped" in shown
    assert "crawl.warc.gz, after byte" in shown
    shown = run("warc", warc, "--strict", "--out", tmp_path / "strict-v0", code=2)
    assert shown.startswith("webforage: crawl.warc.gz, after byte")
    assert not (tmp_path / "strict-v0").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.warc"], "no.warc cannot be read"),
        (["{warc}", "--targets", "("], "is no regular expression"),
        (["{warc}", "--labels", "no.tsv"], "no.tsv cannot be read"),
        (["{warc}", "--world", "half"], "expected open or closed"),
        (["{warc}", "--root", "http://x.example/"], "not among the recorded URLs"),
        (
            ["{warc}", "--drop-template-links", "0.5", "--keep-template-links"],
            "kept or dropped, not both",
        ),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    warc: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    arguments = [one.replace("{warc}", str(warc)) for one in arguments]
    shown = run("warc", *arguments, "--out", tmp_path / "mine-v0", code=2)
    assert shown.startswith("webforage: ") and shown.count("\n") == 1
    assert message in shown
    assert sorted(file.name for file in tmp_path.iterdir()) == ["crawl.warc.gz"]


def test_a_trace_is_not_overwritten_unasked(warc: Path, tmp_path: Path) -> None:
    run("warc", warc, "--out", tmp_path / "mine-v0")
    assert "--force" in run("warc", warc, "--out", tmp_path / "mine-v0", code=2)
    run("warc", warc, "--out", tmp_path / "mine-v0", "--force")


def test_a_missing_extra_is_said(
    warc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    shown = run("warc", warc, "--out", tmp_path / "mine-v0", code=2)
    assert 'pip install "gym-webforage[record]"' in shown


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_an_interrupted_recording_leaves_nothing(tmp_path: Path) -> None:
    file, out = tmp_path / "large.warc", tmp_path / "mine-v0"
    file.write_bytes(b"".join(page(str(i), b"<p>%d" % i) for i in range(3000)))
    command = [sys.executable, "-c", "from gym_webforage.cli import main; main()"]
    command += ["record", "warc", str(file), "-", "--workers", "2", "--out", str(out)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        start_new_session=True,
    )
    assert process.stdin is not None
    # More than a pipe holds: once it is written, the file is behind and parsing
    # processes run.
    process.stdin.write(b"x" * (1 << 20))
    process.stdin.flush()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it, to all processes
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130, shown
    assert b"interrupted, nothing was written" in shown
    assert b"Traceback" not in shown
    assert [one.name for one in tmp_path.iterdir()] == ["large.warc"]
