"""The engine for small logs on this machine: this process alone, without Spark."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import Any

from reports.incident.lines.reader import SplitSummary
from reports.incident.rows import (
    Key,
    Owners,
    Recognise,
    Row,
    about,
    first,
    head_of,
    key_of,
    of_split,
    text_lines,
)
from reports.ingest import uris
from reports.judgement.log.log_bytes import unpacked

Json = dict[str, Any]


class Small:
    """Reads files by their paths; `names` has what people know them by, by their URIs."""

    def __init__(self, names: Mapping[Path, str]) -> None:
        """Take the names of files by their paths."""
        self._paths = {uris.uri_of(path): path for path in names}
        self.names = {uris.uri_of(path): name for path, name in names.items()}
        self._rows: list[Row] = []
        self._tables: dict[str, list[Json]] = {"rejected": [], "rebalances": [], "members": []}

    def read(self, recognise: Recognise, zone: tzinfo) -> Iterator[tuple[str, int, SplitSummary]]:
        """Read all lines; yield each split: its file, its begin in it, its summary."""
        for uri, path in self._paths.items():
            with path.open("rb") as file:
                texts = text_lines(unpacked(file, path.name))
                head = head_of(texts)
                if not head:
                    continue
                form = recognise(uri, head)
                for row in of_split(uri, 0, chain(head, texts), form, zone):
                    if isinstance(row, Row):
                        self._rows.append(row)
                    elif isinstance(row, SplitSummary):
                        yield uri, 0, row
                    else:
                        self._tables["rejected"].append(row)

    def rejected(self) -> list[Json]:
        """Return the first rejected lines."""
        return first("rejected", self._tables["rejected"])

    def abouts(self, owners: Owners, session_ms: float | None) -> Iterator[bytes]:
        """Yield what the lines of each key tell."""
        of_keys: dict[Key, list[Row]] = defaultdict(list)
        self._rows = [*filter(None, map(owners.owned, self._rows))]
        for row in self._rows:
            of_keys[key_of(row.line)].append(row)
        for key, rows in of_keys.items():
            found = about(key, rows, owners, session_ms)
            for name in ("rebalances", "members"):
                self._tables[name] += found[name]
            yield found["about"]

    def rebalances(self) -> list[Json]:
        """Return the first rebalances."""
        return first("rebalances", self._tables["rebalances"])

    def store(self, output: str, texts: Mapping[str, str]) -> None:
        """Write the tables, and files by their names, into a folder of this machine."""
        from pyarrow import parquet  # noqa: PLC0415 (it loads slowly: a refusal does not wait)

        from reports.incident.tables import TABLES, as_columns, table_of  # noqa: PLC0415

        folder = uris.local_path(output)
        assert folder is not None
        tables = {"lines": [*map(as_columns, self._rows)], **self._tables}
        for name, schema in TABLES.items():
            place = folder / "tables" / name
            place.mkdir(parents=True)
            parquet.write_table(table_of(tables[name], schema), place / "part-0.parquet")
        uris.write_texts(folder, texts)
