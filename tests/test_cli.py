"""The command line, in this process and as a real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gym_webforage import __version__
from gym_webforage.cli import app
from gym_webforage.trace import load_trace

SMALL = "synthetic-small-v0"
SITES = "synthetic-small-sites-v0"
AGENT = """
class Agent:
    {slots}
    def __init__(self, env):
        self.env, self.learned = env, 0
    def reset(self, seed):
        self.seed = seed
    def act(self, observation, info):
        {act}
    def learn(self, step):
        self.learned += 1
        assert step.info["fetches"] > 0 and step.next_observation is not None

def make(env, seed):
    return Agent(env)
"""


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def played(*words):
    result = run("play", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*words, says):
    """Run a command that must fail with code 2 and one clear line."""
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("webforage: ")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """Write a module that makes an agent; return its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names = []

    def write(act, slots="pass"):
        name = f"my_agent_{len(names)}"
        names.append(name)
        (tmp_path / f"{name}.py").write_text(AGENT.format(act=act, slots=slots))
        return name

    yield write
    for name in names:
        sys.modules.pop(name, None)


# --- play


def test_play_repeats_itself_as_a_real_command():
    command = Path(sys.executable).with_name("webforage")
    words = [command, "play", "News", "--agent", "random", "--seed", "1"]
    words += ["--budget", "2h", "--json"]
    outputs = [
        subprocess.run(words, check=True, capture_output=True, env=os.environ).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    report = json.loads(outputs[0])
    assert report["env"] == "WebForage/News-v0"
    assert report["truncated"] and not report["terminated"]
    assert report["metrics"]["hours"] >= 2
    assert report["metrics"]["relevant"] > 0


def test_play_tells_how_to_repeat_it():
    report = played(
        "topic", "--trace", SMALL, "--seed", 4, "--budget", 40, "--agent", "first",
        "--option", "relevance=label",
    )  # fmt: skip
    words = report["command"].split()
    assert words[:3] == ["webforage", "play", "Topic"]
    assert played(*words[2:]) == report
    assert report["drawn"]["topic"] in load_trace(SMALL).labels
    assert report["metrics"]["fetches"] == 40
    assert 0 <= report["metrics"]["recall"] <= 1


def test_play_seeds_differ():
    runs = [played("News", "--trace", SMALL, "--seed", s) for s in (1, 2)]
    assert runs[0]["drawn"] != runs[1]["drawn"]


def test_play_for_people(tmp_path):
    picture = tmp_path / "end.png"
    result = run(
        "play", "WebForage/Spider-v0", "--trace", SITES, "--budget", 30,
        "--split", "test", "--slots", 16, "--render", picture,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "harvest rate" in result.stdout
    assert "--slots 16" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_play_with_reset_options():
    report = played(
        "News", "--trace", SMALL, "--budget", 50, "--option", "start=2026-03-05"
    )
    assert report["drawn"]["start"] == 1772668800000


def test_play_with_an_agent_from_a_module(agent):
    name = agent("return int(info['action_set'][0])")
    first = played("News", "--trace", SMALL, "--budget", 200, "--agent", "first")
    mine = played("News", "--trace", SMALL, "--budget", 200, "--agent", name)
    assert mine["metrics"] == first["metrics"]


def test_play_takes_a_file_and_settings(agent):
    words = ("Topic", "--trace", SMALL, "--budget", 50, "--agent")
    name = agent("return int(info['action_set'][0])")
    assert played(*words, f"{name}.py")["metrics"] == played(*words, name)["metrics"]
    plain, other = (played(*words, f"linucb:alpha={alpha}") for alpha in (0.5, 9))
    assert plain["metrics"] == played(*words, "linucb")["metrics"] != other["metrics"]
    assert "--agent linucb:alpha=9" in other["command"]


@pytest.mark.parametrize("name", ["mine.py", "linucb:alpha=1", "linucb"])
def test_play_says_what_works_without_the_baselines(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "baselines", None)
    refused("play", "News", "--agent", name, says="else give a module that offers")


def test_an_agent_that_names_no_view_takes_any(agent):
    name = agent("return int(observation['action_mask'].argmax())")
    words = ("News", "--trace", SMALL, "--budget", 50, "--slots", 8, "--agent")
    assert played(*words, name)["metrics"]["illegal"] == 0


def test_an_agent_says_which_view_it_wants(agent):
    name = agent("return int(observation['action_mask'].argmax())", "slots = 8")
    report = played("News", "--trace", SMALL, "--budget", 100, "--agent", name)
    assert "--slots 8" in report["command"]
    assert report["metrics"]["illegal"] == 0


def test_ctrl_c_still_prints_the_metrics(agent):
    name = agent(
        "\n        if info['fetches'] > 20: raise KeyboardInterrupt"
        "\n        return int(info['action_set'][0])"
    )
    result = run("play", "Topic", "--trace", SMALL, "--agent", name, "--json")
    assert result.exit_code == 130
    report = json.loads(result.stdout)
    assert report["interrupted"]
    assert report["metrics"]["fetches"] == 21
    assert "interrupted" in result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["Nws"], "WebForage/News-v0"),
        (["News", "--trace", "nowhere-v0"], "Known traces: "),
        (["News", "--trace", SMALL, "--agent", "nobody"], "built in are random, first"),
        (["News", "--agent", "list"], "a baseline (backlink, best_first, "),
        (["News", "--trace", SMALL, "--agent", ".odd"], "there is no agent '.odd'"),
        (["News", "--agent", "json"], "make(env, seed)"),
        (["News", "--trace", SMALL, "--budget", "2x"], "budget is '2x'"),
        (["News", "--trace", SMALL, "--budget", "0"], "budget is 0"),
        (["News", "--trace", SMALL, "--split", "dev"], "split is 'dev'"),
        (["News", "--slots", "-3"], "--slots is '-3'"),
        (["News", "--option", "judge"], "expected key=value"),
        (["News", "--option", "slots=3"], "--option slots"),
        (["News", "--trace", SMALL, "--option", "colour=red"], "argument colour"),
        (["News", "--trace", SMALL, "--option", "start=noon"], "noon"),
        (["News", "--render", "end.jpg"], "ends in .png"),
        (["News", "--agent", "z_sum"], "z_sum is for topic and spider, not for news"),
        (["News", "--agent", "ljm:smoothing=1"], "is for topic, not for news"),
        (["Topic", "--agent", "baselines.change_rate"], "is for news, not for topic"),
        (
            [
                "Topic",
                "--trace",
                SMALL,
                "--slots",
                "10",
                "--agent",
                "baselines.cloning",
            ],
            "--slots is 10, but baselines.cloning wants none: leave it out",
        ),
        (["News", "--agent", "linucb:alphas=1"], "no setting 'alphas'; it has: ridge"),
        (["News", "--agent", "no_such.py"], "there is no agent 'no_such.py'"),
        (
            ["Topic", "--trace", SMALL, "--agent", "masked_ppo:weights=no/such"],
            "no/such",
        ),
        (["News", "--render", "no/such/end.png"], "does not exist"),
    ],
)
def test_play_refuses(words, says):
    refused("play", *words, says=says)


# --- info


def test_info():
    result = run("info", SMALL, "--json")
    facts = json.loads(result.stdout)
    trace = load_trace(SMALL)
    assert facts["digest"] == trace.digest
    assert facts["counts"]["urls"] == len(trace.urls)
    assert facts["licence"] == "CC0-1.0"
    assert facts["structure"]["measured"]["clustering"] > 0
    text = run("info", SMALL).stdout
    for word in ("licence", "published", "clustering", "versions", "labels"):
        assert word in text
    assert "clustering" not in run("info", SMALL, "--no-structure").stdout


def test_info_of_a_broken_trace(tmp_path):
    refused("info", "nowhere-v0", says="There is no trace 'nowhere-v0'")
    folder = tmp_path / "broken-v0"
    assert run("trace", "synthetic", "--urls", 200, "--out", folder).exit_code == 0
    (folder / "links.parquet").write_bytes(b"nonsense")
    refused("info", folder, says="broken-v0 is broken: links")


# --- trace


def test_synthetic_and_rewire(tmp_path):
    folder = tmp_path / "mine-v0"
    words = ["trace", "synthetic", "--urls", 300, "--seed", 5, "--days", 2, "--no-text"]
    words += ["--out", folder]
    assert run(*words).exit_code == 0
    first = load_trace(folder)
    assert first.name == "mine-v0"
    assert len(first.urls) == 300 and len(first.vocabulary) == 0
    refused(*words, says="--force")
    assert run(*words, "--force").exit_code == 0
    assert load_trace(folder).digest == first.digest

    control = tmp_path / "control-v0"
    result = run("trace", "rewire", folder, "--seed", 1, "--out", control)
    assert result.exit_code == 0, result.output
    rewired = load_trace(control)
    assert rewired.digest != first.digest
    assert len(rewired.link_target) == len(first.link_target)
    facts = json.loads(run("info", control, "--json").stdout)
    assert facts["structure"]["from"] == "measured now"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["control-v0", "mine-v0"]


def test_force_replaces_traces_only(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    words = ["trace", "synthetic", "--urls", 100, "--out", tmp_path, "--force"]
    refused(*words, says="no trace folder")
    assert (tmp_path / "letter.txt").read_text() == "dear"
    refused("trace", "synthetic", "--urls", 3, "--out", tmp_path / "new", says="urls")
    assert not (tmp_path / "new").exists()


def test_list():
    assert SMALL in run("trace", "list").stdout
    assert SMALL in json.loads(run("trace", "list", "--json").stdout)


def test_version_and_help():
    assert run("--version").stdout == f"webforage {__version__}\n"
    for words in ((), ("info",), ("play",), ("trace",), ("trace", "synthetic")):
        result = run(*words, "--help")
        assert result.exit_code == 0
        assert "Usage" in result.stdout


def test_help_loads_nothing_heavy():
    code = (
        "import sys, gym_webforage.cli\n"
        "heavy = {'numba', 'pyarrow', 'scipy', 'networkx', 'torch', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_states_are_made_from_text(tmp_path):
    out = tmp_path / "states-v0"
    words = ["trace", "states", SMALL, "--out", out]
    made = run(*words, "--method", "svd", "--length", 8)
    assert made.exit_code == 0, made.output
    facts = json.loads(run("info", out, "--no-structure", "--json").stdout)
    assert facts["counts"]["states"] == 8 and facts["states"]["method"] == "svd"
    refused(*words, "--method", "magic", "--force", says="svd")
