"""The rules on a hand-drawn trace, with values worked out by hand."""

import copy

import numpy as np
import pytest

from gym_webforage.trace.trace import Trace
from gym_webforage.world import Rules, World
from gym_webforage.world import layout as L
from gym_webforage.world.rules import parse_budget, parse_duration
from gym_webforage.world.topic import Topic, topic_from_words

HOUR = 3_600_000
HOME, NEWS, OLD, GONE, LOOP, MOVED = range(6)


@pytest.fixture(scope="module")
def trace():
    """Six pages; every one is seen from hour 100 on.

    home  -> news, old, gone, news (again)     published at hour 99
    news  -> loop, home        and from hour 101 a second version -> moved
    old   -> home                              published at hour 1
    gone  : was never recorded
    loop  -> loop, home                        published at hour 99
    moved : a redirect (301) -> old
    """
    return Trace.build(
        {"name": "hand-v0", "roots": ["h://s/home"]},
        urls=[
            "h://s/home",
            "h://s/news",
            "h://s/old.pdf",
            "h://s/gone",
            "h://s/loop",
            "h://s/moved",
        ],
        sites=["s"],
        labels=["sport"],
        vocabulary=["ball", "goal", "tax"],
        url_target=[0, 0, 1, 0, 0, 0],
        url_label_start=[0, 0, 0, 1, 1, 1, 1],
        url_label=[0],
        url_token_start=[0, 0, 0, 1, 1, 1, 1],
        url_token=[0],
        version_start=[0, 1, 3, 4, 4, 5, 6],
        version_seen=[t * HOUR for t in (100, 100, 101, 100, 100, 100)],
        version_published=[t * HOUR for t in (99, 99, 101, 1, 99, 99)],
        version_status=[200, 200, 200, 200, 200, 301],
        version_bytes=[100, 300, 300, 100, 100, 100],
        version_text=[0, -1, -1, 1, -1, -1],
        version_state=[[1, 0], [0, 1], [0, 2], [1, 1], [2, 2], [0, 0]],
        link_start=[0, 4, 6, 7, 8, 10, 11],
        link_target=[NEWS, OLD, GONE, NEWS, LOOP, HOME, MOVED, HOME, LOOP, HOME, OLD],
        link_text=[-1, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1],
        anchor_start=[0, 2],
        anchor_token=[0, 1],
        near_start=[0, 1],
        near_token=[2],
        title_start=[0, 0, 0],
        body_start=[0, 1, 3],
        body_token=[2, 0, 1],
        body_count=[4, 3, 1],
    )


def news(trace, **rules):
    world = World(trace, Rules(kind="news", **rules), slots=4, features="state")
    world.reset(start=100 * HOUR, roots=np.array([HOME]))
    return world


def flags(world):
    events = world.events()
    return list(zip(events["url"].tolist(), events["flags"].tolist(), strict=True))


def test_a_news_visit_fetches_the_page_and_its_links(trace):
    world = news(trace)
    forager = world.foragers[0]
    step = world.step(HOME)
    # home, news, old, gone; news only once though it is linked twice: 4 x 2.6 s.
    assert world.fetches == 4
    assert world.clock == 100 * HOUR + 4 * 2600
    # home and news are an hour old: novel. old.pdf is 99 hours old; gone is dead.
    assert step.reward == 200
    assert flags(world) == [
        (HOME, L.VISITED | L.SENT | L.NOVEL),
        (NEWS, L.SENT | L.NOVEL),
        (OLD, 0),
        (GONE, L.DEAD),
    ]
    # The dead page is known but not on the frontier.
    assert forager.known.tolist() == [HOME, NEWS, OLD, GONE]
    assert forager.action_set().tolist() == [NEWS, OLD]
    # news, first version -> loop (new, novel), home (visited, fetched again, marked).
    step = world.step(NEWS)
    assert world.fetches == 4 + 3
    assert step.reward == 100
    assert forager.action_set().tolist() == [OLD, LOOP]


def test_a_changed_page_is_a_new_document_unless_documents_are_urls(trace):
    for document, reward in (("version", 100), ("url", 0)):
        world = news(trace, document=document)
        world.step(HOME)
        world.step(NEWS)
        world.ints[L.CLOCK] = 101 * HOUR  # an hour later news has a new version
        world.step(OLD)  # -> home, not novel any more
        assert world.step(LOOP).reward == 0  # itself marked; -> itself, home
        # The frontier is empty: a new path starts anywhere known.
        assert world.foragers[0].action_set().tolist() == [HOME, NEWS, OLD, GONE, LOOP]
        assert world.step(NEWS).reward == reward  # -> moved, a redirect: no document
        assert world.foragers[0].action_set().tolist() == [MOVED]
        world.step(MOVED)  # its link is followed
        assert world.foragers[0].action_set().tolist() == [OLD]


def test_a_path_ends_after_its_length(trace):
    world = news(trace, path_length=2)
    forager = world.foragers[0]
    world.step(HOME)
    assert forager.action_set().tolist() == [NEWS, OLD]
    world.step(NEWS)
    assert forager.action_set().tolist() == [HOME, NEWS, OLD, GONE, LOOP]
    assert forager.slot_urls().tolist() == [HOME, NEWS, OLD, GONE]
    # A dead start costs a fetch, and its path is over at once.
    assert world.step(GONE) == (0.0, False, False, False)
    assert forager.action_set().tolist() == [HOME, NEWS, OLD, GONE, LOOP]


def test_refetching_visited_pages_can_be_switched_off(trace):
    world = news(trace, refetch_visited=False)
    world.step(HOME)
    world.step(NEWS)  # itself and loop, but not home
    assert world.fetches == 4 + 2


def test_the_two_judges_pay_differently(trace):
    for judge, first, second in (("selection", 200, -2), ("evolution", 198, -2)):
        world = World(trace, Rules(kind="news", judge=judge), foragers=2)
        world.reset(start=100 * HOUR, roots=np.array([HOME]))
        assert world.step(HOME, forager=0).reward == first
        # The second forager sends the same two pages, which nobody wants twice.
        assert world.step(HOME, forager=1).reward == second
        assert world.foragers[1].ints[L.LAST_SENT] == 2


def test_a_page_is_too_old_by_its_age_at_the_end_of_the_step(trace):
    # home and news were published at hour 99; the step ends 10.4 s after hour 100.
    world = news(trace, max_age="3610.4s")
    assert world.step(HOME).reward == 200
    world = news(trace, max_age="3610.3s")
    assert world.step(HOME).reward == 0


def test_costs_by_size_and_host_delay(trace):
    mean = 1000 / 6  # the six versions have 1000 bytes
    world = news(trace, cost="bytes", fetch_seconds=1)
    world.step(HOME)
    parts = [100, 300, 100]
    expected = sum(round(1000 * size / mean) for size in parts) + 1000  # gone: 1 s
    assert world.clock == 100 * HOUR + expected
    world = news(trace, host_delay=10, fetch_seconds=1)
    world.step(HOME)
    # Four fetches from one site: three waits between them.
    assert world.clock == 100 * HOUR + 4 * 1000 + 3 * 10_000


def test_a_half_millisecond_is_rounded_up():
    # The mean size is 80 bytes: 2600 x 7 / 80 = 227.5 ms.
    trace = Trace.build(
        {"name": "half", "roots": ["a"]},
        urls=["a", "b"],
        version_start=[0, 1, 2],
        version_seen=[0, 0],
        version_bytes=[7, 153],
    )
    world = World(trace, Rules(kind="spider", cost="bytes"))
    world.reset(start=0, roots=np.array([0]))
    world.step(0)
    assert world.clock == 228


def test_budgets_truncate_after_the_step_is_finished(trace):
    world = news(trace, budget=5)
    assert not world.step(HOME).truncated
    assert world.step(NEWS).truncated and world.fetches == 7
    world = news(trace, budget="10s")
    assert world.step(HOME).truncated


def test_illegal_actions_cost_a_fetch(trace):
    world = news(trace)
    for url in (NEWS, -1, 99, 2**40):
        step = world.step(url)
        assert step == (-1.0, False, False, True)
    assert world.fetches == 4 and world.clock == 100 * HOUR + 4 * 2600
    assert flags(world) == [(-1, L.ILLEGAL)] * 4
    assert world.foragers[0].action_set().tolist() == [HOME]


def test_spider_pays_targets_once_and_ends_when_nothing_is_left(trace):
    world = World(trace, Rules(kind="spider"), slots=4)
    world.reset(start=100 * HOUR, roots=np.array([HOME]), site=0)
    rewards = [world.step(url).reward for url in (HOME, NEWS, OLD, GONE)]
    assert rewards == [0, 0, 1, 0]
    last = world.step(LOOP)
    assert last.terminated and world.fetches == 5
    assert world.step(HOME).illegal  # what was visited never comes back


def test_topic_pays_the_cosine(trace):
    topic = topic_from_words(trace, ["ball"])
    world = World(trace, Rules(kind="topic", threshold=0.5), slots=4)
    world.reset(start=100 * HOUR, roots=np.array([HOME]), topic=topic)
    assert world.step(HOME).reward == 0  # its text is "tax"
    # old.pdf holds "ball" 3 times and "goal" once, both on one of two texts.
    assert world.step(OLD).reward == pytest.approx(3 / np.sqrt(10))
    assert flags(world)[-1] == (OLD, L.VISITED | L.NOVEL)
    labelled = World(trace, Rules(kind="topic", relevance="label"), slots=4)
    sport = topic_from_words(trace, ["tax"], label=0)
    labelled.reset(start=100 * HOUR, roots=np.array([HOME]), topic=sport)
    assert [labelled.step(url).reward for url in (HOME, OLD)] == [0, 1]


def test_topic_rows_tell_what_links_say(trace):
    topic = topic_from_words(trace, ["ball"])
    world = World(trace, Rules(kind="topic"), slots=4)
    world.reset(start=100 * HOUR, roots=np.array([HOME]), topic=topic)
    world.step(HOME)
    candidates, mask, _ = world.observe()
    assert world.foragers[0].slot_urls().tolist() == [NEWS, OLD, GONE, -1]
    assert mask.tolist() == [1, 1, 1, 0]
    row = dict(zip(L.TRANSFER_COLUMNS, candidates[1].tolist(), strict=True))
    assert row["anchor"] == pytest.approx(1 / np.sqrt(2))  # "ball goal"
    assert row["near"] == 0 and row["url"] == 1  # "tax"; "ball"
    assert row["depth"] == pytest.approx(1 / 6)
    assert row["in_links"] == pytest.approx(1 / 6)


def test_slots_show_the_newest_or_the_oldest(trace):
    for shortlist, expected in (("newest", [GONE, OLD]), ("oldest", [NEWS, OLD])):
        world = World(trace, Rules(kind="spider"), slots=2, shortlist=shortlist)
        world.reset(start=100 * HOUR, roots=np.array([HOME]))
        world.step(HOME)
        # Newest: news (0), old (1), then gone pushes news out of slot 0.
        assert world.foragers[0].slot_urls().tolist() == expected


def test_a_world_refuses_what_its_kernels_could_not_stand(trace):
    world = World(trace, Rules(kind="topic"))
    good = {"start": 100 * HOUR, "roots": np.array([HOME])}
    topic = topic_from_words(trace, ["ball"])
    other = Topic("x", np.ones(99))
    for bad in (
        {"roots": np.array([10**8])},
        {"roots": np.array([-1])},
        {"roots": np.array([0.5])},
        {"roots": np.array([], int)},
        {"roots": np.array([[0]])},
        {"start": -1},
        {"site": 7},
        {"topic": other},
        {"topic": Topic("x", topic.weights, label=9)},
    ):
        with pytest.raises(ValueError, match=r"expected|another trace"):
            world.reset(**{**good, **bad})


def test_a_shallow_copy_is_a_world_of_its_own(trace):
    world = news(trace)
    twin = copy.copy(world)
    world.step(HOME)
    assert twin.fetches == 0 and twin.step(HOME).reward == 200


def test_no_log_no_events(trace):
    world = World(trace, Rules(), log=False)
    with pytest.raises(RuntimeError, match="log=True"):
        world.events()


def test_durations_and_budgets():
    assert parse_duration("1.5h") == 5_400_000
    assert parse_budget("250") == (-1, 250)
    for bad in ("", "h", "-1h", "1w", "1e9d", "0s"):
        with pytest.raises(ValueError, match="expected a number and a unit"):
            parse_duration(bad)
    for bad in (0, -3, True, 2.0, None):
        with pytest.raises(ValueError, match="budget is"):
            parse_budget(bad)
