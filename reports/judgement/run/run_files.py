"""The files of a run folder as texts and JSON; each problem is an `EvidenceError` with its file."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from reports.judgement.errors import EvidenceError
from reports.judgement.run.json_form import Form, lacks, parse


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
            content = parse(self._text(name))
        except ValueError as error:
            raise EvidenceError(
                f"{self.place}/{name}: no JSON ({error}); the run was cut off or altered"
            ) from error
        if wrong := lacks(content, form):
            raise EvidenceError(f"{self.place}/{name}: {wrong}; the run was cut off or altered")
        return cast(dict[str, Any], content)

    def _text(self, name: str) -> str:
        file = self._file(name)
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EvidenceError(
                f"{self.place}/{name}: cannot be read ({error}); check the file"
            ) from error

    def _file(self, name: str) -> Path:
        file = self.path / name
        if not self.path.is_dir():
            raise EvidenceError(f"{self.path}: no such run folder; `ls runs` lists those there are")
        if not file.is_file():
            raise EvidenceError(
                f"{self.place}/{name}: missing; {self.place} is not the folder of a run"
            )
        return file


def if_readable(file: Path) -> Iterator[str]:
    """Yield the text of a file, if there is one."""
    with suppress(OSError):
        yield file.read_text(encoding="utf-8", errors="replace")
