"""The recordings that the tests have."""

from pathlib import Path

from reports.judgement.recording import Recording

HERE = Path(__file__).parent


def recordings(folder: Path) -> dict[str, Recording]:
    """Return the recordings in a folder, by name."""
    return {
        one.name: Recording(one)
        for one in sorted(folder.iterdir())
        if (one / "environment.json").exists()
    }


RECORDINGS = recordings(HERE)
"""The recordings of all groups, one a coordinator."""
HISTORIES = recordings(HERE / "histories")
"""Those with a client history, one a coordinator."""
TAPPED = recordings(HERE / "tapped")
"""Those that the tap saw, too: its logs lie beside the brokers'."""
FETCHES = recordings(HERE / "fetches")
"""Those whose logs have OffsetFetch, over a failover, one a coordinator."""
UNANSWERED = recordings(HERE / "unanswered")
"""Those at level `wire` in which members died before their requests were answered."""
