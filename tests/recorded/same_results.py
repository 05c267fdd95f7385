"""Compares what two versions of groupquake make of the same runs: verdicts and every table.

python -m tests.recorded.same_results OLD NEW

OLD and NEW are folders of judged run folders with the same names. One line a run is printed. The
exit code is 1 where anything differs; then the line names the key of `verdict.json`, or the table,
the row and the columns. `verdict.json` has to hold the same keys, in the same order, and the same
values. A table has to hold the same rows, in any order, under the same columns, in any order.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

RENAMED: Mapping[str, Mapping[str, str]] = {
    "requests": {"serial": "correlation_id"},
    "transitions": {"life": "process", "sn": "serial_number"},
    "coverage": {"life": "process", "sn": "serial_number", "fate": "status"},
    "lost": {"life": "process"},
    "groups": {"wait_ms": "max_rebalance_timeout_ms"},
}
"""New names of columns by table and old name. JSON in a column has its keys as `column.key`."""
OF_THE_MACHINE: tuple[str, ...] = ()
"""Keys of `verdict.json` that tell of the machine or the time of judging; there are none."""
JSON_COLUMNS: Mapping[str, str] = {"replay": "payload"}
"""Columns by table whose text is a JSON object."""
SHOWN = 120
"""How many characters of a value are printed."""

Row = tuple[tuple[str, str], ...]
"""Columns and their values as text, ordered by column."""


def differences(old: Path, new: Path, renamed: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield every difference of two judged run folders, one for `verdict.json` and each table."""
    verdicts = [folder / "verdict.json" for folder in (old, new)]
    if absent := [str(file) for file in verdicts if not file.is_file()]:
        yield f"not judged: {', '.join(absent)}"
        return
    first = next(_of_json("verdict.json", *(json.loads(file.read_text()) for file in verdicts)), "")
    if first:
        yield first
    names = [{path.name for path in (folder / "tables").iterdir()} for folder in (old, new)]
    yield from (f"table {name}: gone" for name in sorted(names[0] - names[1]))
    yield from (f"table {name}: new" for name in sorted(names[1] - names[0]))
    for name in sorted(names[0] & names[1]):
        tables = old / "tables" / name, new / "tables" / name
        yield from _of_tables(name.removesuffix(".parquet"), *tables, renamed)


def _of_json(place: str, old: Any, new: Any) -> Iterator[str]:
    """Yield where two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        kept = [[key for key in side if key not in OF_THE_MACHINE] for side in (old, new)]
        if kept[0] != kept[1]:
            yield f"{place}: keys {_short(kept[0])}, now {_short(kept[1])}"
        for key in kept[0]:
            if key in new:
                yield from _of_json(f"{place}: {key}", old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place}: {len(old)} items, now {len(new)}"
        for number, pair in enumerate(zip(old, new, strict=False)):
            yield from _of_json(f"{place}[{number}]", *pair)
    elif type(old) is not type(new) or old != new:
        yield f"{place}: {_short(old)}, now {_short(new)}"


def _of_tables(
    name: str, old: Path, new: Path, renamed: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """Yield how two stored tables differ: their columns, the first row and how many more."""
    stored = [ds.dataset(path, format="parquet") for path in (old, new)]
    names = renamed.get(name, {})
    before = {names.get(field.name, field.name): str(field.type) for field in stored[0].schema}
    after = {field.name: str(field.type) for field in stored[1].schema}
    if before != after:
        yield f"table {name}: columns {sorted(before.items() - after.items())}, now " + str(
            sorted(after.items() - before.items())
        )
        return
    olds = Counter(_row(name, row, names) for row in stored[0].to_table().to_pylist())
    news = Counter(_row(name, row, {}) for row in stored[1].to_table().to_pylist())
    gone, come = olds - news, news - olds
    if not gone and not come:
        return
    count = f"table {name}: {gone.total()} of {olds.total()} rows differ, {come.total()} are new"
    if not gone or not come:
        yield f"{count}; the first: {_described(gone or come)}"
        return
    row = min(gone)
    nearest = min(come, key=lambda other: (len({*row} ^ {*other}), other))
    values = dict(nearest)
    unlike = [
        f"column {column}: {_short(value)}, now {_short(values.get(column))}"
        for column, value in row
        if values.get(column) != value
    ]
    yield f"{count}; the first: {_described([row])}; {'; '.join(unlike)}"


def _row(table: str, row: Mapping[str, Any], names: Mapping[str, str]) -> Row:
    """Return a row that can be counted, under the new names of its columns."""
    values = {names.get(column, column): value for column, value in row.items()}
    if packed := JSON_COLUMNS.get(table):
        content = json.loads(values.pop(packed))
        keys = {key: f"{packed}.{key}" for key in content}
        values |= {names.get(key, key): content[bare] for bare, key in keys.items()}
    return tuple(sorted((column, repr(value)) for column, value in values.items()))


def _described(rows: Iterable[Row]) -> str:
    """Write the first of some rows."""
    row = ", ".join(f"{column}={value}" for column, value in min(rows) if value != "None")
    return f"row ({_short(row, 4 * SHOWN)})"


def _short(value: Any, length: int = SHOWN) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= length else f"{text[:length]}…"


def compare(
    old: Path, new: Path, renamed: Mapping[str, Mapping[str, str]] = RENAMED
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of every run in two folders, and its differences."""
    names = [_runs(folder) for folder in (old, new)]
    for name in sorted(names[0] | names[1]):
        if name not in names[0] or name not in names[1]:
            yield name, [f"not in {(old, new)[name in names[0]]}"]
        else:
            yield name, list(differences(old / name, new / name, renamed))


def _runs(folder: Path) -> set[str]:
    """Name the run folders in a folder; a link (`latest`) is none."""
    found = {file.parent for file in folder.glob("*/environment.json")}
    return {run.name for run in found if not run.is_symlink()}


def main(old: Path, new: Path) -> int:
    """Print one line a run; return the exit code."""
    runs = same = 0
    for name, found in compare(old, new):
        runs, same = runs + 1, same + (not found)
        print(f"{name}: {' | '.join(found) or 'the same'}", flush=True)
    print(f"{same} of {runs} runs: the same verdict and tables")
    return 0 if runs and same == runs else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tests.recorded.same_results OLD NEW")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
