"""The files of a run folder as texts and JSON; each problem is an `EvidenceError` with its file."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from reports.judgement.errors import EvidenceError
from reports.judgement.run.journal import Form, lacks, parse
from scenarios.regular_files import open_regular, read_regular

EVIDENCE = ("*.json*", "*.yaml", "*/*/group.log*", "*/*/jvm-*.log")
"""The files of a run that are read, as globs."""
OF_A_RUN = ("environment.json", "experiment.yaml", "plan.json", "journal.jsonl")
LARGEST = 256 << 20  # how many bytes a file of a run may have that is read as a whole


@dataclass(frozen=True)
class RunFiles:
    """Where a run is, and the texts of its small files."""

    path: Path
    uri: str = ""
    """Where the run folder is, if `path` holds only a copy of its small files."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """The files that are at `uri` alone, by their names in the run folder, and their bytes."""

    @property
    def place(self) -> str:
        """The run folder, as messages name it."""
        return self.uri or str(self.path)

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.place.rpartition("/")[2]

    def _json(self, name: str, form: Form) -> dict[str, Any]:
        try:
            content = parse(self._bytes(name))
            wrong = lacks(content, form)
        except ValueError as error:
            wrong = str(error)
        if wrong is not None:
            raise EvidenceError(f"{self.place}/{name}: {wrong}; the run was cut off or altered")
        return cast(dict[str, Any], content)

    @property
    def is_there(self) -> bool:
        """Whether the folder has anything that only a run writes."""
        return any(os.path.lexists(self.path / name) for name in OF_A_RUN)

    def require_regular(self) -> None:
        """Raise EvidenceError where evidence on this machine cannot be opened, or may never end.

        Spark, which opens most of it, would wait for a FIFO, and names no file that it cannot open.
        """
        for file in sorted(file for names in EVIDENCE for file in self.path.glob(names)):
            try:
                open_regular(file).close()
            except OSError as error:
                raise self._unreadable(str(file.relative_to(self.path)), error) from error

    def _bytes(self, name: str) -> bytes:
        try:
            return read_regular(self._there(name), LARGEST)
        except OSError as error:
            raise self._unreadable(name, error) from error

    def _size(self, name: str) -> int | None:
        """Return how many bytes a file has, here or elsewhere; None without one."""
        file = self.path / name
        return file.stat().st_size if file.is_file() else self.elsewhere.get(name)

    def _there(self, name: str) -> Path:
        file = self.path / name
        if not self.path.is_dir():
            raise EvidenceError(f"{self.path}: no such run folder; `ls runs` lists those there are")
        if not os.path.lexists(file):
            raise EvidenceError(
                f"{self.place}/{name}: missing; {self.place} is not the folder of a run"
            )
        return file

    def _unreadable(self, name: str, error: OSError) -> EvidenceError:
        return EvidenceError(
            f"{self.place}/{name}: cannot be read ({error.strerror}); check the file"
        )

    def _altered(self, wrong: str, name: str = "environment.json") -> EvidenceError:
        return EvidenceError(f"{self.place}/{name}: {wrong}; it was altered")
