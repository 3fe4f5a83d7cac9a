"""What a leaderboard says, as plain data: the tables, the page and the tests read it.

`benchmarks.assemble.make_board` makes it from rows; it can be written as JSON. Scores
are scaled from the random walk (0) to the oracle (1) for each task and seed. Every
interval is a 95 % bootstrap interval. None stands where there is no figure, such as a
score on a task without a scale.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Made(TypedDict):
    """How the leaderboard came about."""

    version: str  # of gym_webforage
    commit: str  # of the checkout, "-dirty" at its end if files were changed
    command: str  # what was typed
    seeds: int  # runs of an agent on a task
    rows: int  # runs in all, the failed ones included
    versions: dict[str, str]  # of Python and the libraries that figures depend on
    resamples: int  # of the bootstrap


class Sees(TypedDict):
    """What a method was allowed to see or use beside the crawl itself."""

    privileged: bool  # looks into the trace, as the oracle does
    trains: bool  # learns from other sites, topics or times before the crawl
    training_fetches: float  # of crawls before the measured one, mean of the runs
    slots: int | None  # how much of the action set it sees; None: all of it
    text: str  # all this in a few words, for a cell of a table


class Cell(TypedDict):
    """An agent's result on one task of a group."""

    score: float | None  # interquartile mean over the seeds
    low: float | None
    high: float | None
    found: float  # mean over the seeds; a failed run found nothing
    failed: int


class GroupStanding(TypedDict):
    """An agent's place in a group of tasks."""

    agent: str
    rank: int | None  # 1 + how many are clearly better; None: it missed a task
    rank_last: int | None  # the place if all ties went against it
    rank_ties: list[str]  # agents whose intervals overlap with its own
    score: float | None  # interquartile mean over all tasks and seeds of the group
    low: float | None
    high: float | None
    area_score: float | None  # the same of the area under the curve: sooner is more
    tasks_run: int  # of the group's tasks; some agents cannot play all
    per_task: dict[str, Cell]
    cpu_seconds: float  # mean of a run, making and training the agent included
    steps: float  # environment steps of a run, mean
    training_fetches: float
    privileged: bool
    trains: bool
    sees: str  # `Sees.text`
    failed: int  # runs
    runs: int


class Group(TypedDict):
    """Tasks that are ranked together."""

    id: str  # news, topic, spider, fleet-news, ...
    title: str
    tasks: list[str]  # ids
    standings: list[GroupStanding]  # the best first


class Curve(TypedDict):
    """What was found against the share of the budget that was used."""

    x: list[float]  # from 0 to 1
    mean: list[float]  # pages found
    low: list[float]
    high: list[float]


class TaskStanding(TypedDict):
    """An agent's place in one task."""

    agent: str
    rank: int | None
    rank_last: int | None
    rank_ties: list[str]
    score: float | None
    low: float | None
    high: float | None
    found_mean: float  # a failed run found nothing
    found_low: float | None
    found_high: float | None
    area: float  # mean over the budget of what was found so far
    area_score: float | None
    found_at: dict[str, float]  # mean found by "25 %", "50 %", ... of the budget
    curve: Curve
    fetches: float
    steps: float
    cpu_seconds: float
    illegal: float  # illegal actions of a run, mean
    failed: int
    runs: int
    sees: Sees


class TaskBoard(TypedDict):
    """One task."""

    id: str
    group: str
    kind: str  # news, topic or spider
    fleet: str  # "" for one crawler, else how many and which population
    trace: str
    budget: int | str  # fetches, or simulated time such as "1d"
    finds: str  # what is counted
    title: str
    scaled_seeds: int  # seeds where the oracle finds clearly more than a random walk
    seeds: int
    standings: list[TaskStanding]  # the best first


class Failure(TypedDict):
    """A run that failed."""

    task: str
    agent: str
    seed: int
    traceback: str


class Fleet(TypedDict):
    """The course of one run of a fleet: that of the lowest seed."""

    task: str
    agent: str
    seed: int
    time: list[float]  # hours since the start
    population: list[int]
    freshness: list[float | None]  # share of found pages that are still as found
    found: list[int]


class Improvement(TypedDict):
    """How probably an agent finds more than another on a task and seed of a group.

    The runs of both are paired by task and seed; equal finds count half.
    """

    agents: list[str]
    mean: list[list[float | None]]  # mean[i][j]: agent i finds more than agent j
    low: list[list[float | None]]
    high: list[list[float | None]]


class Profile(TypedDict):
    """Performance profile: the share of runs with a score above a threshold."""

    threshold: list[float]
    share: dict[str, list[float]]  # by agent
    low: dict[str, list[float]]
    high: dict[str, list[float]]


class Board(TypedDict):
    """The whole leaderboard."""

    made: Made
    groups: list[Group]
    tasks: list[TaskBoard]
    failures: list[Failure]
    fleets: list[Fleet]
    improvement: dict[str, Improvement]  # by group
    profiles: dict[str, Profile]  # by group
    replays: NotRequired[list[dict[str, Any]]]  # of `benchmarks.page.replay.record`
