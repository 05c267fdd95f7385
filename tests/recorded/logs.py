"""The recordings that the tests have."""

from operator import itemgetter
from pathlib import Path

from reference_coordinator.replay import ObservedRequest
from reports.judgement.logged import REQUEST, LoggedRow, Requests
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


def observed(row: LoggedRow) -> ObservedRequest:
    """Return one readable request as the oracle sees it."""
    (found,) = Requests.decoded([itemgetter(*REQUEST)(row)]).observed
    return found
