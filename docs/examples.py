"""An example of each command, with what it prints, for `cli.md`.

Those that need no cluster are run whenever the page is made. The others are kept in `examples/`,
one file a command, as they were printed by a real run.
"""

import io
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from groupquake.cli import code_of
from groupquake.signals import SIGNALS

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).parent / "examples"
RECORDED = ROOT / "tests" / "recorded"
FILES = {
    "kafka-logs": RECORDED / "stock" / "3.9.1-java",
    "events.jsonl": RECORDED / "defects" / "replaced_id_stays_pending_sync-4.4.0-java.jsonl",
}
"""What the examples read, by the names that they have there."""
RUN = (
    "groupquake list",
    "groupquake show duplicate-instance-id",
    "groupquake plan demo --seed 1",
    "groupquake validate demo rolling-bounce",
    "groupquake simulate demo",
    "groupquake new --yes",
    "groupquake open",
    "groupquake nightly nightly --check",
    "groupquake heal",
    "groupquake oracle replay events.jsonl",
    "groupquake report kafka-logs",
)
MOST_LINES = 24
"""Of an example; the rest is left out."""
HOME = "/home/you"


def examples() -> Mapping[str, str]:
    """Return the text of each example by its command, such as `groupquake oracle replay`."""
    kept = {
        f"groupquake {file.stem.replace('_', ' ')}": file.read_text("utf-8").rstrip()
        for file in KEPT.glob("*.txt")
    }
    return kept | dict(_run())


def _run() -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name).resolve()
        for link, file in FILES.items():
            Path(link).symlink_to(file)
        (folder / "runs" / "latest").mkdir(parents=True)
        (folder / "runs" / "latest" / "report.html").touch()
        own = {"XDG_STATE_HOME": str(folder / "state"), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        with patch.dict(os.environ, {**own, "BROWSER": ""}), patch.object(SIGNALS, "install"):
            for line in RUN:
                text = _printed_by(line).replace(str(folder), HOME).replace(f"{ROOT}/", "")
                lines = text.rstrip().splitlines()
                cut = ["…"] if len(lines) > MOST_LINES else []
                path = " ".join(line.split()[: 3 if " oracle " in line else 2])
                yield path, "\n".join([f"$ {line}", *lines[:MOST_LINES], *cut])


def _printed_by(line: str) -> str:
    """Return what a command prints as its result; progress is left out."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code_of(shlex.split(line)[1:])
    return out.getvalue()
