"""What the shell completes: names of experiments, releases, run folders. It imports no models.

click asks for it; `_GROUPQUAKE_COMPLETE=bash_source groupquake` prints the script of a shell.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from click import Context, Parameter
from click.shell_completion import CompletionItem

from kafka_protocol.releases import number
from scenarios.listing import names

Completion = Callable[[Context, Parameter, str], list[CompletionItem[str]]]
FILES = ("*/environment.json", "*/night.json")
"""What folders of runs and of nights hold, below their parent."""


def experiments(_: Context, __: Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the names of the library; the shell offers files where none begins so."""
    return [CompletionItem(incomplete, type="file"), *_beginning(incomplete, names())]


def runs(_: Context, __: Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the folders of runs and nights below a folder, `runs` or `nights`, newest first."""
    above, slash = incomplete.rpartition("/")[:2]
    parents = [Path(above)] if slash else [Path("runs"), Path("nights")]
    files = [file for up in parents for mark in FILES for file in up.glob(mark)]
    folders = sorted({file.parent for file in files}, reverse=True)
    found = _beginning(incomplete, map(str, folders))
    return [CompletionItem(incomplete, type="file"), *found]


def releases(_: Context, __: Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the first release of every set of rules, newest first."""
    from reference_coordinator.classic.releases import (  # noqa: PLC0415 (others do not need it)
        PROFILE_NAMES,
    )

    named = {found[0] for name in PROFILE_NAMES if (found := re.match(r"[0-9.]+", name))}
    whole = {name if name.count(".") == 2 else f"{name}.0" for name in named}
    return _beginning(incomplete, sorted(whole, key=number, reverse=True))


def _beginning(incomplete: str, known: Iterable[str]) -> list[CompletionItem[str]]:
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]
