"""``webforage play``: one crawl by one agent, and what it achieved."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gym_webforage.cli.common import INTERRUPTED, clear_errors, fail, load, stderr

if TYPE_CHECKING:
    from gym_webforage.envs import ForageEnv

ENVS = ("News", "Topic", "Spider")
RESET_OPTIONS = ("roots", "start")  # given to reset; all others to the environment
BETWEEN_UPDATES = 50  # steps from one look of the progress bar to the next


def play(
    env: Annotated[str, typer.Argument(metavar="ENV", help="News, Topic or Spider.")],
    agent: Annotated[
        str,
        typer.Option(
            help="random, first, or a module with make(env, seed). Where the package "
            "baselines can be imported (from the repository's root) also the bare name "
            "of a baseline (a wrong one lists them: --agent list), a .py file, and "
            "settings: linear_td:alpha=0.2."
        ),
    ] = "random",
    seed: Annotated[
        int, typer.Option(min=0, help="Of what reset draws and of the agent.")
    ] = 0,
    budget: Annotated[
        str | None, typer.Option(help="Fetches (1000) or time (2h, 1d).")
    ] = None,
    trace: Annotated[str | None, typer.Option(help="Name or path of a trace.")] = None,
    split: Annotated[str, typer.Option(help="train, test or all.")] = "train",
    slots: Annotated[
        str | None, typer.Option(help="Size of the agent's window, or none.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="key=value for the environment; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    render: Annotated[
        Path | None, typer.Option(help="PNG file for a picture of the end.")
    ] = None,
) -> None:
    """Let an agent crawl for one episode and print what it achieved.

    The same command always gives the same result. Ctrl-C ends the crawl early and
    still prints what was achieved so far.

    Try:

      webforage play News --agent random --seed 1 --budget 2h

      webforage play Topic --option relevance=label --split test

      webforage play Spider --agent breadth_first --render end.png
    """
    from gym_webforage import envs
    from gym_webforage.cli.agents import agent_module, check_kind, make_agent
    from gym_webforage.envs.forage import DEFAULT_TRACES
    from gym_webforage.envs.run import summarize

    kind = _kind(env)
    _check_render(render)
    given = _parse_options(option or [])
    reset_options = {key: given.pop(key) for key in RESET_OPTIONS if key in given}
    if budget is not None:
        given["budget"] = budget
    if render is not None:
        given["render_mode"] = "rgb_array"
    module = agent_module(agent)
    check_kind(agent, module, kind.lower())
    view = getattr(module, "slots", None) if slots is None else _parse_slots(slots)
    source = trace or DEFAULT_TRACES[getattr(envs, f"{kind}Env").kind]
    given["trace"] = load(source)
    given["split"] = split

    world = _make_env(kind, view, given)
    player = make_agent(agent, module, world, seed)
    wanted = getattr(player, "slots", None)
    # Those that are built in take any view, as may others that name none.
    if slots is not None and module is not None and hasattr(player, "slots"):
        _check_view(agent, wanted, view)
    if slots is None and wanted != view:
        view = wanted
        world = _make_env(kind, view, given)
        player = make_agent(agent, module, world, seed)
    command = _command(kind, agent, seed, budget, source, split, view, option)
    with clear_errors(TypeError):
        start = world.reset(seed=seed, options=reset_options or None)
    ended = _crawl(world, player, start, seed)
    report = {
        "env": f"WebForage/{kind}-v0",
        "trace": world.unwrapped.trace.name,
        "agent": agent,
        "seed": seed,
        "drawn": world.unwrapped.episode.describe(world.unwrapped.trace),
        **ended,
        "metrics": summarize(world.unwrapped.world, world.unwrapped.events()),
        "command": command,
    }
    if render is not None:
        _save_picture(world, render)
    if as_json:
        typer.echo(json.dumps(report, indent=2, allow_nan=False))
    else:
        _show(report)
    if ended["interrupted"]:
        typer.echo("webforage: interrupted; these are the metrics so far", err=True)
        raise typer.Exit(INTERRUPTED)


# --- what the user gave


def _kind(env: str) -> str:
    short = env.removeprefix("WebForage/").removesuffix("-v0")
    for name in ENVS:
        if short.lower() == name.lower():
            return name
    known = ", ".join(f"{name} (WebForage/{name}-v0)" for name in ENVS)
    fail(f"there is no environment {env!r}; known are {known}")


def _parse_slots(slots: str) -> int | None:
    if slots.lower() == "none":
        return None
    if not slots.isdecimal() or int(slots) < 1:
        fail(f"--slots is {slots!r}, expected a positive number or none")
    return int(slots)


def _check_view(agent: str, wanted: int | None, given: int | None) -> None:
    """Refuse a view in which an agent's actions mean something else."""
    if wanted != given:
        wants = "none" if wanted is None else wanted
        fail(f"--slots is {given or 'none'}, but {agent} wants {wants}: leave it out")


def _parse_options(options: list[str]) -> dict[str, Any]:
    """Read key=value pairs; a value is JSON or, where it is none, text."""
    found: dict[str, Any] = {}
    for text in options:
        key, equals, value = text.partition("=")
        if not equals or not key:
            fail(f"--option is {text!r}, expected key=value")
        if key in ("trace", "split", "slots", "budget", "render_mode", "log"):
            fail(f"--option {key} is not possible; see webforage play --help")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _check_render(render: Path | None) -> None:
    if render is None:
        return
    if render.suffix.lower() != ".png":
        fail(f"--render is {str(render)!r}, expected a file that ends in .png")
    if not render.absolute().parent.is_dir():
        fail(f"--render: the folder {render.parent} does not exist")


def _make_env(kind: str, slots: int | None, given: dict[str, Any]) -> Any:
    from gym_webforage import envs

    with clear_errors(TypeError):
        return getattr(envs, f"{kind}Env")(slots=slots, **given)


def _command(
    kind: str,
    agent: str,
    seed: int,
    budget: str | None,
    trace: str,
    split: str,
    slots: int | None,
    options: list[str] | None,
) -> str:
    """Return the command that repeats this crawl, whatever the defaults become."""
    words = ["webforage", "play", kind, "--agent", agent, "--seed", str(seed)]
    if budget is not None:
        words += ["--budget", budget]
    words += ["--trace", trace, "--split", split]
    words += ["--slots", "none" if slots is None else str(slots)]
    for option in options or []:
        words += ["--option", option]
    return shlex.join(words)


# --- the crawl


def _crawl(env: Any, agent: Any, start: Any, seed: int) -> dict[str, bool]:
    """Let the agent crawl to the end; say how it ended."""
    from gym_webforage.envs.run import Transition

    terminated = truncated = interrupted = False
    learn = getattr(agent, "learn", None)
    observation, info = start
    try:
        with _progress(env.unwrapped) as tell:
            agent.reset(seed)
            while not (terminated or truncated):
                action = agent.act(observation, info)
                after, reward, terminated, truncated, info = env.step(action)
                if learn is not None:
                    learn(
                        Transition(
                            observation,
                            action,
                            float(reward),
                            after,
                            terminated,
                            truncated,
                            info,
                        )
                    )
                observation = after
                tell()
    except KeyboardInterrupt:
        interrupted = True
    return {
        "terminated": terminated,
        "truncated": truncated,
        "interrupted": interrupted,
    }


@contextmanager
def _progress(env: ForageEnv) -> Iterator[Any]:
    """Show on a terminal how much of the budget is used."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}% of the budget"),
        TimeElapsedColumn(),
    )
    console = stderr()
    if console.quiet:
        yield lambda: None
        return
    steps = 0
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("crawling", total=1.0)

        def tell() -> None:
            nonlocal steps
            steps += 1
            if steps % BETWEEN_UPDATES == 0:
                bar.update(task, completed=_used(env))

        yield tell


def _used(env: ForageEnv) -> float:
    """Return the share of the budget that is spent."""
    from gym_webforage.world.rules import parse_budget

    time, fetches = parse_budget(env.rules.default_budget)
    world = env.world
    return world.fetches / fetches if time < 0 else (world.clock - world.start) / time


# --- results


def _save_picture(env: Any, file: Path) -> None:
    from gymnasium.error import DependencyNotInstalled

    with clear_errors(DependencyNotInstalled):
        picture = env.render()
        from matplotlib.image import imsave

        imsave(file, picture)


def _show(report: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from gym_webforage.trace.trace import to_iso

    console = Console()
    title = f"{report['agent']} in {report['env']} on {report['trace']}"
    table = Table(box=box.SIMPLE_HEAD, title=escape(title), show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right", overflow="fold")
    drawn = dict(report["drawn"])
    drawn["start"] = to_iso(drawn["start"])[:19]
    roots = drawn["roots"]
    drawn["roots"] = ", ".join(roots[:3]) + (", ..." if len(roots) > 3 else "")
    for name, value in drawn.items():
        if value is not None:
            table.add_row(name, escape(str(value)))
    ended = [how for how in ("terminated", "truncated", "interrupted") if report[how]]
    table.add_row("ended", ", ".join(ended), end_section=True)
    for name, value in report["metrics"].items():
        if value is not None:
            shown = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
            table.add_row(name.replace("_", " "), shown)
    console.print(table)
    console.print("Repeat it:", style="bold")
    # Not through rich, which would break a long line and so the command.
    typer.echo(f"  {report['command']}")
