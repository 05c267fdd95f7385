"""URIs and paths of evidence and results, without Spark: what they name, and what is there.

A plain path means `file:`.
"""

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from reports.judgement.errors import EvidenceError

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_GLOB = re.compile(r"[\\*?\[\]{}]")


def literal(uri: str) -> str:
    """Return what Spark reads as this very URI, which may have characters of globs in it."""
    return _GLOB.sub(r"\\\g<0>", uri)


def uri_of(place: str | Path) -> str:
    """Return the URI of a place, without a slash at its end; a plain path means `file:`."""
    text = str(place).rstrip("/")
    return text if SCHEME.match(text) else f"file:{Path(place).absolute()}"


def local_path(uri: str) -> Path | None:
    """Return the path of a `file:` URI; None for any other one."""
    return Path("/" + uri.removeprefix("file:").lstrip("/")) if uri.startswith("file:") else None


def refuse_results(uri: str, there: Iterable[str]) -> None:
    """Raise EvidenceError if there are results in the folder at a URI: names of some of them."""
    for name in there:
        raise EvidenceError(f"{uri}/{name}: exists already; delete it, or give another output")


def remove(uri: str, names: Iterable[str]) -> None:
    """Remove files and folders, by name, from the folder at a URI, if that is on this machine.

    Elsewhere Spark replaces them when it writes them again.
    """
    folder = local_path(uri)
    for place in [folder / name for name in names] if folder is not None else ():
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write text files, by name, into a folder of this machine, in place of those there."""
    from scenarios.regular_files import replace_file  # noqa: PLC0415 (executors have no scenarios)

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        replace_file(folder / name, text.encode())
