"""The adapters in `clients/`: how each is built, from its own registry, and how it is started."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

import groupquake
from chaos.clusters.jars import tools_class_path
from chaos.clusters.java import find_java
from groupquake.exits import NotSteadyError
from scenarios.clients import ADAPTERS, filled
from scenarios.problems import nearest
from scenarios.regular_files import read_regular

SOURCES = Path(groupquake.__file__).parents[1] / "clients"
BUILT = "built"
"""The file that says that a build is whole."""
SHOWN = 3
"""How many lines of a failed build are shown."""


class AdapterError(NotSteadyError):
    """An adapter that cannot be built; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter, as its `adapter.toml` has it.

    `needs` are programs that have to be installed, `files` what is built, `build` command lines
    that run in the folder `{built}`, and `command` starts a member.
    """

    name: str
    language: str
    library: str
    needs: tuple[str, ...]
    files: tuple[str, ...]
    build: tuple[tuple[str, ...], ...]
    command: tuple[str, ...]

    @classmethod
    def named(cls, name: str) -> "Adapter":
        """Read an adapter. Raises AdapterError if there is none of the name."""
        if name not in ADAPTERS:
            raise AdapterError(f"there is no client {name!r}; {nearest(name, ADAPTERS)}")
        content = tomllib.loads(read_regular(SOURCES / name / "adapter.toml").decode())
        return msgspec.convert({**content, "name": name}, cls)

    @property
    def missing(self) -> str | None:
        """The first program that it needs and that is not installed."""
        return next((one for one in self.needs if shutil.which(one) is None), None)

    @property
    def sources(self) -> list[Path]:
        """The files that it is built from."""
        return [(SOURCES / self.name / file).resolve() for file in self.files]

    @property
    def version(self) -> str | None:
        """The version of its library that its build file pins; None if it is built of nothing."""
        pin = re.compile(rf"{re.escape(self.library)}\W+v?(\d[\w.]*)")
        found = (pin.search(read_regular(file).decode()) for file in self.sources)
        return next((one[1] for one in found if one), None)

    @property
    def folder(self) -> Path:
        """Where it is built: in the user's cache, in another folder for other sources."""
        digest = hashlib.sha256(repr((self.build, sys.version_info[:2])).encode())
        for file in self.sources:
            digest.update(read_regular(file))
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "groupquake" / "clients" / f"{self.name}-{digest.hexdigest()[:12]}"

    @property
    def is_built(self) -> bool:
        """Whether nothing is left to build."""
        return not self.build or (self.folder / BUILT).exists()


def built(adapter: Adapter, progress: Callable[[str], None]) -> list[str]:
    """Build an adapter, unless it is built; return its command line, with a member's fields in it.

    Raises AdapterError if a program is missing or a step fails.
    """
    folder = adapter.folder
    if not adapter.is_built:
        if adapter.missing:
            raise AdapterError(
                f"client {adapter.name}: there is no {adapter.missing!r} on the path; install"
                f" {adapter.language}, or leave this client out"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            if not adapter.is_built:  # another process built it meanwhile
                progress(f"building the client {adapter.name} ({adapter.language})")
                _build(adapter, folder)
    return filled(adapter.command, {"built": str(folder)})


def command_of(
    name: str, version: str, kafka_home: Path | None, progress: Callable[[str], None]
) -> list[str]:
    """Return the command line of an adapter's members, which still has their fields in it.

    Kafka's own client is that of the `version` of the brokers. Raises AdapterError, and
    ClusterError if there is no Java, or no jars of Kafka's tools.
    """
    command = built(Adapter.named(name), progress)
    if name != "java":
        return command
    progress(f"Kafka {version}: getting the jars of its tools")
    java, jars = find_java(), tools_class_path(version, kafka_home)
    return filled(tuple(command), {"java": str(java), "class_path": ":".join(map(str, jars))})


def _build(adapter: Adapter, folder: Path) -> None:
    for file in adapter.sources:
        shutil.copy(file, folder)
    log = folder / "build.log"
    with log.open("wb") as output:
        for step in adapter.build:
            words = filled(step, {"python": sys.executable, "built": str(folder)})
            words[0] = str(folder / words[0]) if "/" in words[0] else words[0]
            done = subprocess.run(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if done.returncode != 0:
                last = " | ".join(log.read_text(errors="replace").strip().splitlines()[-SHOWN:])
                raise AdapterError(
                    f"client {adapter.name}: '{' '.join(words)}' ended with {done.returncode}"
                    f" ({last}); see {log}"
                )
    (folder / BUILT).touch()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time build in a folder."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
