"""The recordings that the tests have."""

from pathlib import Path

from reports.judgement.recording import Recording

RECORDINGS = {
    folder.name: Recording(folder)
    for folder in sorted(Path(__file__).parent.iterdir())
    if (folder / "environment.json").exists()
}
"""All recordings that the tests have."""
