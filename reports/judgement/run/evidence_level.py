"""Evidence levels: what a run's evidence is, where it lies, and what it cannot show.

`environment.json` names the level of a run (`evidence`); without it the level is `requests`.
"""

from enum import StrEnum


class Level(StrEnum):
    """What the verdict of a run rests on; incidents, without a run, have another level.

    `REQUESTS`: the brokers' logs, with requests and coordinator lines. `WIRE`: what the tap saw of
    requests and answers.
    """

    REQUESTS = "requests"
    WIRE = "wire"

    @property
    def folder(self) -> str:
        """The folder of a run in which each broker has a folder with its log."""
        return "tap" if self is Level.WIRE else "brokers"


CANNOT_SEE = (
    "when a rebalance began and why: the replay tells it",
    "a rebalance that leads to no answer, as when the last member leaves: it is not compared",
    "a session that expires after the last request of its group",
    "when a broker loaded a group, or gave it up: only that it did, between two answers",
    "what a broker stored that no answer shows, when another takes over",
    "members whose requests do not pass the tap",
)  # what level `wire` does not show, in words
