"""Crawlers to compare with: one method a file, found by looking into this folder.

A file without a leading underscore is a baseline, `agent`, `fleet` and `train` aside.
It offers ``make(env, seed) -> Agent``, and that is all it takes to be tested and
ranked. Settings of a method are keyword arguments of its ``make``; a name may give
them: ``"linear_td:alpha=0.2,first=discovered"``. A module that is not made for all
kinds of environments names its own, ``KINDS = ("topic", "spider")``, and one whose
``make`` learns from other sites or topics says ``TRAINS = True``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

Setting = bool | int | float | str

FOLDER = Path(__file__).parent
LOOPS = ("agent", "fleet", "train")  # what lets agents run or learn; no baselines
GIVEN = ("is_news", "max_age", "training_fetches")  # fields that `make` itself fills in


class NoAgentError(LookupError):
    """A name, or its settings, that no agent has."""


def names() -> list[str]:
    """Return the names of all baselines, sorted."""
    return sorted(
        file.stem
        for file in FOLDER.glob("*.py")
        if not file.stem.startswith("_") and file.stem not in LOOPS
    )


def find(name: str) -> Path:
    """Return the file of a baseline, or of an agent elsewhere, without running it.

    ``name`` is a baseline's, a module's (``my_package.my_agent``) or a ``.py`` file,
    with settings behind a colon or without.
    """
    name = split(name)[0]
    if name.endswith(".py"):
        file = Path(name)
        if file.is_file():
            return file.resolve()
    elif name in names():
        return FOLDER / f"{name}.py"
    else:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is not None and spec.origin and Path(spec.origin).is_file():
            return Path(spec.origin)
    raise NoAgentError(
        f"there is no agent {name!r}; the baselines are {', '.join(names())}, and a "
        "module's name or a .py file works as well"
    )


def split(name: str) -> tuple[str, dict[str, Setting]]:
    """Return the name of a method and its settings.

    >>> split("linear_td:alpha=0.2,first=discovered")
    ('linear_td', {'alpha': 0.2, 'first': 'discovered'})
    """
    method, colon, text = name.partition(":")
    settings: dict[str, Setting] = {}
    for part in text.split(",") if colon else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip().isidentifier():
            raise NoAgentError(
                f"agent {name!r}: {part!r} is no setting, expected key=value"
            )
        settings[key.strip()] = _value(value.strip())
    return method, settings


def _value(text: str) -> Setting:
    if text in ("true", "True", "false", "False"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class Method:
    """A method with settings: makes agents as its module does."""

    module: ModuleType
    settings: dict[str, Setting]

    @property
    def KINDS(self) -> tuple[str, ...]:
        """The kinds of environments that the module is made for."""
        return _kinds(self.module)

    @property
    def slots(self) -> int | None:
        """The view that the module wants."""
        return getattr(self.module, "slots", None)

    def make(self, env: Any, seed: int) -> Any:
        """Make an agent."""
        return self.module.make(env, seed, **self.settings)


def load(name: str) -> Any:
    """Return the module of a baseline, or of an agent elsewhere: see `find`.

    With settings in the name it is a `Method` instead, which has the same ``make``.
    """
    method, settings = split(name)
    module = _module(method)
    if not settings:
        return module
    known = settings_of(module)
    for key in settings:
        if known is not None and key not in known:
            listed = ", ".join(known) or "none"
            raise NoAgentError(f"agent {name!r}: no setting {key!r}; it has: {listed}")
    return Method(module, settings)


def settings_of(module: ModuleType) -> list[str] | None:
    """Return the settings of a method, None if nothing tells which there are.

    They are the arguments of its ``make``. Where that takes ``**settings``, they are
    also the fields of the class that it says it returns, those with a default.
    """
    signature = inspect.signature(module.make)
    arguments = list(signature.parameters.values())[2:]
    known = [a.name for a in arguments if a.kind is not a.VAR_KEYWORD]
    if len(known) == len(arguments):
        return known
    made = signature.return_annotation
    made = getattr(module, made, None) if isinstance(made, str) else made
    if not is_dataclass(made):
        return None
    for field in fields(made):
        has_default = not field.default is field.default_factory is MISSING
        if field.init and has_default and field.name not in (*GIVEN, *known):
            known.append(field.name)
    return known


def kinds(name: str) -> tuple[str, ...]:
    """Return the kinds of environments that a method is made for."""
    return _kinds(_module(split(name)[0]))


def _kinds(module: ModuleType) -> tuple[str, ...]:
    return tuple(getattr(module, "KINDS", ("news", "topic", "spider")))


def trains(name: str) -> bool:
    """Say whether a method learns from other sites or topics when it is made."""
    return bool(getattr(_module(split(name)[0]), "TRAINS", False))


def _module(name: str) -> ModuleType:
    file = find(name)
    if name.endswith(".py"):
        own_name = f"agent_file_{file.stem}"  # hides no module of the file's name
        spec = importlib.util.spec_from_file_location(own_name, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look their own module up here.
        sys.modules[own_name] = module
        spec.loader.exec_module(module)
    else:
        inside = name in names()
        module = importlib.import_module(f"baselines.{name}" if inside else name)
    if not callable(getattr(module, "make", None)):
        raise NoAgentError(f"{file} offers no make(env, seed)")
    return module
