"""Scripts that run in a child, where gevent may watch processes."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_script(
    script: str, *arguments: str, within_s: float = 120, env: Mapping[str, str] | None = None
) -> list[str]:
    """Run a script to its end; return the lines that it prints."""
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=within_s,
        env=env,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()
