"""The leaderboard's page, as text and in a real browser, and the crawls it replays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import baselines
from baselines.agent import make_agent, run_episode
from benchmarks.page import render
from benchmarks.page.replay import record
from benchmarks.tasks import QUICK
from gym_webforage import fleet_v0
from tests import board_samples, browser
from tests.board_samples import AGENTS, HOSTILE

# --- the file


def data_of(page: str) -> Any:
    found = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', page
    )
    assert len(found) == 1
    return json.loads(found[0])


def test_figures_survive_and_cannot_end_their_tag() -> None:
    texts = [*HOSTILE, "<!--<script>", "\u2028\ud800"]
    page = render({"failures": [{"traceback": text} for text in texts]})
    assert [each["traceback"] for each in data_of(page)["failures"]] == texts
    assert page.count("</script>") == 2
    assert page.isascii() or "\u2028" not in page


def test_numbers_are_short_and_json() -> None:
    given = [0.123456789, 2.0, float("nan"), float("inf"), 1_234_567.25, -3, True]
    wanted = [0.12346, 2, None, None, 1_234_567.2, -3, True]
    assert data_of(render({"x": given}))["x"] == wanted
    with pytest.raises(TypeError, match="a set cannot stand on the page"):
        render({"x": {1}})


def test_nothing_outside_is_named() -> None:
    page = render({})
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert re.search(r"default-src 'none'; script-src 'sha256-[^']+'; style-src", page)
    assert "{{" not in page


# --- recorded crawls


@pytest.mark.parametrize(
    ("task", "agent"), [(QUICK[0], "best_first"), (QUICK[1], "random_walk")]
)
def test_a_recording_is_the_crawl(task: Any, agent: str) -> None:
    kept = record(task, agent, seed=3, steps=10_000)
    env, crawler = make_agent(baselines.load(agent), task.make, 3)
    known = []
    result = run_episode(
        env, crawler, seed=3, on_step=lambda step: known.append(len(step.info["known"]))
    )
    steps = kept["steps"]
    assert kept["whole"]
    assert len(steps["page"]) == result.steps
    assert sum(steps["fetches"]) == result.fetches
    assert sum(steps["reward"]) == pytest.approx(result.reward, abs=1e-2)
    assert steps["known"] == known
    visited = result.events["url"][result.events["flags"] & 1 > 0]
    urls = [kept["pages"]["base"] + url for url in kept["pages"]["url"]]
    trace = env.unwrapped.world.trace  # type: ignore[attr-defined]
    assert [urls[page] for page in steps["page"]] == [trace.urls[u] for u in visited]


def test_a_recording_is_deterministic_and_cut() -> None:
    first = record(QUICK[0], "weblog", seed=1, steps=50)
    assert json.dumps(first) == json.dumps(record(QUICK[0], "weblog", seed=1, steps=50))
    assert not first["whole"]
    assert len(first["steps"]["page"]) == 50
    pages = first["pages"]
    assert len(pages["x"]) + first["hidden"] == first["steps"]["known"][-1]
    places = set(zip(pages["x"], pages["y"], strict=True))
    assert len(places) == len(pages["x"])  # no page hides another
    with pytest.raises(ValueError, match="steps is 0, expected at least 1"):
        record(QUICK[0], "weblog", seed=1, steps=0)


@dataclass(frozen=True)
class FleetTask:
    """As much of a task as a recording needs."""

    id: str = "fleet"
    finds: str = "novel pages"

    def make(self, slots: int | None = None) -> Any:
        return fleet_v0.env(
            "synthetic-small-v0",
            founders=3,
            population="score",
            budget="2h",
            slots=slots,
        )


def test_a_fleet_can_be_recorded() -> None:
    kept = record(FleetTask(), "weblog", seed=0, steps=150)  # type: ignore[arg-type]
    steps = kept["steps"]
    assert set(steps["forager"]) >= {0, 1, 2}
    assert steps["alive"][0] == 3
    assert np.all(np.diff(steps["time"]) >= 0)
    assert np.all(np.diff(steps["known"]) >= 0)


# --- in the browser

needs_browser = pytest.mark.skipif(
    browser.find() is None, reason="no Chromium on this machine (apt install chromium)"
)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "leaderboard.html"
    file.write_text(render(board_samples.board()), encoding="utf-8")
    return file


@pytest.fixture
def tab(chromium: browser.Browser, file: Path) -> Iterator[browser.Tab]:
    tab = chromium.open(file)
    yield tab
    assert tab.complaints() == []
    assert tab.requests() == [file.as_uri()]
    tab.close()


def agents(tab: browser.Tab) -> list[str]:
    return tab.run(
        "[...document.querySelectorAll('#table tbody bdi')].map(e => e.textContent)"
    )


def text(tab: browser.Tab, selector: str) -> str:
    return tab.run(f"document.querySelector({json.dumps(selector)}).textContent")


def value(tab: browser.Tab) -> int:
    return int(tab.run("document.querySelector('#scrub').value"))


@needs_browser
def test_every_section_shows(tab: browser.Tab) -> None:
    shown = tab.run(
        "[...document.querySelectorAll('section:not([hidden])')].map(e => e.id)"
    )
    assert shown == (
        "ranking curves comparison fleets replay failures provenance".split()
    )
    links = tab.run("[...document.querySelectorAll('nav a')].map(e => e.hash.slice(1))")
    assert links == shown
    assert agents(tab) == list(AGENTS)
    assert "9 crawlers on 3 tasks, 10 seeds each, 1 run failed" in text(tab, "#lead")
    assert "aee04c6d11f2" in text(tab, "#made")
    assert "KeyError: 17" in text(tab, "#failures pre")
    # Bars, lines with bands, and the table of improvement.
    assert tab.run("document.querySelectorAll('#table .interval').length") == len(
        AGENTS
    )
    assert tab.run("document.querySelectorAll('#curve-chart .line').length") == 6
    assert tab.run("document.querySelectorAll('#curve-chart .band').length") == 6
    assert tab.run("document.querySelectorAll('#population-chart .line').length") == 2
    assert tab.run("document.querySelectorAll('#profile-chart .line').length") == 6
    assert (
        tab.run("document.querySelectorAll('#improvement-table tbody tr').length") == 6
    )


@needs_browser
def test_an_empty_board_shows_what_it_has(
    chromium: browser.Browser, tmp_path: Path
) -> None:
    file = tmp_path / "empty.html"
    file.write_text(render({"made": {"version": "1"}, "replays": []}))
    tab = chromium.open(file)
    shown = tab.run(
        "[...document.querySelectorAll('section:not([hidden])')].map(e => e.id)"
    )
    assert shown == ["provenance"]
    assert tab.complaints() == []
    tab.close()


@needs_browser
def test_sorts_by_click_and_by_key(tab: browser.Tab) -> None:
    sort = (
        "document.querySelector('#table [data-key=cpu_seconds]').closest('th').ariaSort"
    )
    cells = (
        "[...document.querySelectorAll('#table tbody tr')]"
        ".map(r => Number(r.cells[[...document.querySelectorAll('#table thead button')]"
        ".findIndex(b => b.dataset.key === 'cpu_seconds')].textContent))"
    )
    tab.click("#table [data-key=cpu_seconds]")
    assert tab.run(sort) == "descending"
    down = tab.run(cells)
    assert down == sorted(down, reverse=True)
    assert len(set(down)) > 2
    tab.press("Enter")  # the head keeps the focus
    assert tab.run(sort) == "ascending"
    assert tab.run(cells) == sorted(down)
    tab.press(" ")
    assert tab.run(sort) == "descending"
    assert tab.run("document.querySelectorAll('#table [aria-sort]').length") == 1
    tab.click("#table [data-key=agent]")
    assert agents(tab) == sorted(AGENTS)


@needs_browser
def test_failed_agents_stay_last_either_way(tab: browser.Tab) -> None:
    tab.choose("#board", "task spider")
    for _ in range(2):
        tab.click("#table [data-key=score]")
        assert agents(tab)[-1] == "broken"
    assert "1 failed" in text(tab, "#table .is-failed")


@needs_browser
def test_filters(tab: browser.Tab) -> None:
    tab.click("#filter")
    tab.type("FIRST")
    assert agents(tab) == ["best_first", "breadth_first"]
    assert text(tab, "#shown") == "2 of 9 agents"
    tab.run("document.querySelector('#filter').value = ''")
    tab.click("#hide-privileged")
    tab.click("#hide-trained")
    assert agents(tab) == [
        a for a in AGENTS if a not in ("oracle", "naive_bayes_q", "ppo")
    ]
    tab.choose("#board", "task spider")
    tab.click("#hide-failed")
    assert "broken" not in agents(tab)
    tab.click("#hide-privileged")
    assert agents(tab)[0] == "oracle"


@needs_browser
def test_curves_are_chosen_and_read(tab: browser.Tab) -> None:
    tab.click("#curve-none")
    assert "No agent is chosen" in text(tab, "#curve-chart")
    tab.click("#curve-agents [data-agent=weblog]")
    assert tab.run("document.querySelectorAll('#curve-chart .line').length") == 1
    pressed = (
        "document.activeElement.ariaPressed + document.activeElement.dataset.agent"
    )
    assert tab.run(pressed) == "trueweblog"
    tab.run("document.querySelector('#curve-chart .chart').focus()")
    tab.press("End")
    assert "100 %" in text(tab, "#curve-chart .readout")
    tab.press("ArrowLeft")
    assert "95 %" in text(tab, "#curve-chart .readout")
    assert "weblog" in text(tab, "#curve-chart .readout")
    x, y = tab.run(
        "(() => {const b = document.querySelector('#curve-chart svg')"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + 100]})()"
    )
    tab.mouse("mouseMoved", x, y)
    tab.wait(
        "!/95 %/.test(document.querySelector('#curve-chart .readout').textContent)"
    )


@needs_browser
def test_replay_by_keys(tab: browser.Tab) -> None:
    replay = board_samples.board()["replays"][0]
    steps, pages = replay["steps"], replay["pages"]
    tab.run("document.querySelector('#player').focus()")
    assert value(tab) == 0
    for _ in range(3):
        tab.press("ArrowRight")
    assert value(tab) == 3
    now = text(tab, "#now")
    assert "Step 3: visited" in now
    assert pages["base"] + pages["url"][steps["page"][2]] in now
    tab.press("ArrowLeft")
    assert value(tab) == 2
    tab.press("ArrowRight", shift=True)
    assert value(tab) == 12
    tab.press("End")
    assert value(tab) == len(steps["page"])
    assert f"{sum(steps['fetches']):,}" in text(tab, "#facts")
    assert f"{steps['known'][-1]:,}" in text(tab, "#facts")
    tab.press("ArrowRight")
    assert value(tab) == len(steps["page"])
    tab.press("Home")
    assert value(tab) == 0


PIXELS = "document.querySelector('#map').toDataURL()"


@needs_browser
def test_replay_plays_pauses_and_scrubs(tab: browser.Tab) -> None:
    tab.choose("#speed", "40")
    empty = tab.run(PIXELS)
    tab.click("#play")
    tab.wait("Number(document.querySelector('#scrub').value) > 5")
    assert text(tab, "#play-word") == "Pause"
    assert tab.run("document.querySelector('#now').ariaLive") == "off"
    tab.click("#play")
    assert text(tab, "#play-word") == "Play"
    assert tab.run("document.querySelector('#now').ariaLive") == "polite"
    there = value(tab)
    tab.run("new Promise(done => setTimeout(done, 150))")
    assert value(tab) == there
    assert tab.run(PIXELS) != empty
    tab.click("#scrub")  # its middle
    assert 55 <= value(tab) <= 65
    there = tab.run(PIXELS)
    tab.press("ArrowRight")
    assert tab.run(PIXELS) != there
    tab.press("ArrowLeft")
    assert tab.run(PIXELS) == there  # the map depends on the step alone
    tab.press(" ")
    tab.wait("Number(document.querySelector('#scrub').value) === 120")
    tab.wait("document.querySelector('#play-word').textContent === 'Play'")
    tab.choose("#replay-choice", "1")
    assert value(tab) == 0
    assert tab.run("document.querySelector('#scrub').max") == "60"
    assert "site " in text(tab, "#replay-note")


@needs_browser
def test_hostile_strings_stay_text(chromium: browser.Browser, tmp_path: Path) -> None:
    board: Any = board_samples.board(hostile=True)
    replay = board["replays"][0]
    replay["agent"], replay["about"] = HOSTILE[0], HOSTILE[1]
    replay["pages"]["base"] = HOSTILE[1] + HOSTILE[3]
    board["made"]["command"] = HOSTILE[0]
    file = tmp_path / "hostile.html"
    file.write_text(render(board), encoding="utf-8")
    tab = chromium.open(file)
    tab.run("document.querySelector('#player').focus()")
    tab.press("End")
    shown = [text.replace("\u202e", "\\u202e") for text in HOSTILE]
    assert agents(tab) == [*AGENTS, *shown]
    for details in tab.run(
        "[...document.querySelectorAll('#failures pre')].map(e => e.textContent)"
    )[1:]:
        assert details in [f"{each}\n{each}" for each in shown]
    assert shown[1] + shown[3] in text(tab, "#now")
    assert HOSTILE[0] in text(tab, "#made")
    assert "\u202e" not in tab.run("document.body.innerText")
    assert tab.run("window.hacked === undefined && !document.images.length")
    assert tab.complaints() == []
    assert tab.requests() == [file.as_uri()]
    tab.close()


@needs_browser
def test_the_policy_stops_what_would_load(
    chromium: browser.Browser, file: Path
) -> None:
    tab = chromium.open(file)
    tab.run("document.body.append(Object.assign(new Image(), {src: 'data:,x'}))")
    tab.run("document.body.insertAdjacentHTML('beforeend', '<i onclick=hacked=1>')")
    tab.run("document.querySelector('body > i').click()")
    assert tab.run("window.hacked === undefined")
    said = "".join(tab.complaints())
    assert "img-src" in said
    assert "script-src" in said
    tab.close()


@needs_browser
@pytest.mark.parametrize("width", [320, 390, 768])
def test_no_sideways_scroll(
    chromium: browser.Browser, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "hostile.html"
    file.write_text(render(board_samples.board(hostile=True)), encoding="utf-8")
    tab = chromium.open(file)
    tab.resize(width, 844, phone=True)
    tab.send("Page.reload")
    tab.wait("document.querySelector('#scrub')?.max === '120'")
    for board in ("group news", "task spider"):
        tab.choose("#board", board)
        assert tab.run("document.documentElement.scrollWidth") == width
    tab.run("document.querySelector('#player').focus()")
    tab.press("End")
    tab.run("document.querySelectorAll('details').forEach(e => { e.open = true })")
    assert tab.run("document.documentElement.scrollWidth") == width
    table = "document.querySelector('#ranking .scroll')"
    assert tab.run(f"{table}.scrollWidth > {table}.clientWidth")
    tab.close()


CONTRAST = """(() => {
  const context = Object.assign(document.createElement('canvas'),
    {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => {
    context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data; };
  const light = (colour) => {
    const [r, g, b] = [...rgb(colour)].map(x => x / 255)
      .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return colour; } };
  return (selector, property) => {
    const e = document.querySelector(selector);
    const [a, b] = [light(getComputedStyle(e)[property]), light(back(e))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
})()"""


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(tab: browser.Tab, scheme: str) -> None:
    tab.choose("#board", "task spider")  # where one has failed
    tab.prefer(color_scheme=scheme)
    dark = (
        tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 27)"
    )
    assert dark == (scheme == "dark")
    for selector in (
        "h1 .lead .note .kicker td .badge .badge.bad #play .chip #now .facts&dt "
        "summary&small .made&dt thead&button .field option"
    ).split():
        ratio = tab.run(
            f"{CONTRAST}({json.dumps(selector.replace('&', ' '))}, 'color')"
        )
        assert ratio >= 4.5, selector
    for place in range(6):
        line = f"#curve-chart .line.s{place}"
        assert tab.run(f"{CONTRAST}({json.dumps(line)}, 'stroke')") >= 3, line


@needs_browser
def test_focus_is_seen_and_motion_reduced(tab: browser.Tab) -> None:
    tab.press("Tab")
    assert tab.run("document.activeElement.className") == "skip"
    for _ in range(3):
        tab.press("Tab")
    style = "getComputedStyle(document.activeElement)"
    assert tab.run(f"{style}.outlineStyle") == "solid"
    assert tab.run(f"parseFloat({style}.outlineWidth) >= 2")
    scroll = "getComputedStyle(document.documentElement).scrollBehavior"
    assert tab.run(scroll) == "smooth"
    tab.prefer(reduced_motion="reduce")
    assert tab.run(scroll) == "auto"
