"""A recorded or synthesized run at level `wire`: what the tap would have seen of it.

Its requests and answers, and nothing else. The times are those at which a broker took a request up,
at the earliest by its line, and answered it; when it acted on it in between is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kafka_protocol import tap_lines
from kafka_protocol.request_log import LOGGER, PARTS_MS, printed
from reports.judgement.log.log_places import Level, Split, log_of
from reports.judgement.recording import Line, Recording
from reports.judgement.run.run_folder import RunFolder
from selftest.mutants.synthesized_run import with_timestamps

OF_BROKER = tuple(part for part in PARTS_MS if part != "remoteTimeMs")
"""Times within a broker, which the wire does not show."""


class WireFolder(RunFolder):
    """A run folder that is read as one of level `wire`."""

    @property
    def level(self) -> Level:
        """What the verdict rests on."""
        return Level.WIRE


@dataclass(frozen=True, eq=False)
class WireRun(Recording):
    """The requests of another run, with their answers, as the tap would have written them."""

    original: Recording

    @cached_property
    def run(self) -> RunFolder:
        """The files of the run folder beside the logs."""
        return WireFolder(self.original.run.path)

    @cached_property
    def texts(self) -> Mapping[Split, Sequence[bytes]]:
        """The lines by file."""
        return {
            Split(log_of(broker, self.run.parser.folder), 0): [text.encode() for text in texts]
            for broker, texts in on_wire(self.original.lines, self.original.run.brokers).items()
        }


def on_wire(lines: Iterable[Line], brokers: Iterable[str]) -> Mapping[str, list[str]]:
    """Return what the tap would have written of logged requests, by broker (id)."""
    found: dict[str, list[tuple[float, str]]] = {broker: [] for broker in brokers}
    for line in lines:
        content = line.request
        if content is None or not line.row["readable"]:
            continue
        forwarded_ms, answered_ms = line.row["earliest_ms"], line.row["answered_ms"]
        took_ms = round(answered_ms - forwarded_ms, 3)
        content |= {"totalTimeMs": took_ms, "remoteTimeMs": took_ms, **dict.fromkeys(OF_BROKER, 0)}
        text = f"tap DEBUG {printed(content)} ({LOGGER})"
        found.setdefault(line.broker, []).append((answered_ms, text))
    last_ms = max((at_ms for seen in found.values() for at_ms, _ in seen), default=0.0)
    end = last_ms + 1, f"tap DEBUG {tap_lines.ENDED} ({tap_lines.LOGGER})"
    return {
        broker: [*with_timestamps([*sorted(seen), end], numbered=True)]
        for broker, seen in found.items()
    }
