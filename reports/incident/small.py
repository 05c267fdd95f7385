"""The engine for small logs on this machine: this process alone, without Spark."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import Any

from reports.incident.rows import (
    Key,
    Owners,
    Recognise,
    Row,
    first,
    head_of,
    key_of,
    of_key,
    of_split,
    text_lines,
)
from reports.ingest import uris
from reports.judgement.log.log_bytes import unpacked


class Small:
    """Reads files by their paths; `names` has what people know them by, by their URIs."""

    def __init__(self, names: Mapping[Path, str]) -> None:
        """Take the names of files by their paths."""
        self._paths = {uris.uri_of(path): path for path in names}
        self.names = {uris.uri_of(path): name for path, name in names.items()}
        self._rows: dict[str, list[Any]] = defaultdict(list)

    def read(self, recognise: Recognise, zone: tzinfo) -> None:
        """Read all lines."""
        for uri, path in self._paths.items():
            with path.open("rb") as file:
                texts = text_lines(unpacked(file, path.name))
                head = head_of(texts)
                form = recognise(uri, head)
                for kind, row in of_split(uri, 0, chain(head, texts), form, zone):
                    self._rows[kind].append(row)

    def tell(self, owners: Owners, session_ms: float | None) -> None:
        """Bring together the lines of each key."""
        of_keys: dict[Key, list[Row]] = defaultdict(list)
        for row in filter(None, map(owners.owned, self._rows.pop("lines", []))):
            of_keys[key_of(row.line)].append(row)
        for key, rows in of_keys.items():
            for kind, row in of_key(key, rows, owners, session_ms):
                self._rows[kind].append(row)

    def first(self, kind: str) -> list[Any]:
        """Return the first rows of a kind."""
        return first(kind, self._rows[kind])

    def store(self, output: str, texts: Mapping[str, str]) -> None:
        """Write the tables, and files by their names, into a folder of this machine."""
        from pyarrow import parquet  # noqa: PLC0415 (it loads slowly: a refusal does not wait)

        from reports.incident.tables import TABLES, table_of  # noqa: PLC0415

        folder = uris.local_path(output)
        assert folder is not None
        for name, schema in TABLES.items():
            place = folder / "tables" / name
            place.mkdir(parents=True)
            parquet.write_table(table_of(self._rows[name], schema), place / "part-0.parquet")
        uris.write_texts(folder, texts)
