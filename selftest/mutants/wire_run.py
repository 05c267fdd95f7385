"""A recorded or synthesized run at level `wire`: what the tap would have seen of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from reports.judgement.log.log_places import Split, log_of
from reports.judgement.recording import Recording
from reports.judgement.run.evidence_level import Level
from reports.judgement.run.run_folder import RunFolder
from selftest.mutants.wire_form import on_wire


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
            Split(log_of(broker, self.parser.folder), 0): [text.encode() for text in texts]
            for broker, texts in on_wire(self.original.lines, self.original.run.brokers).items()
        }
