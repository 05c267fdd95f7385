"""`broker.slow-network`: what brokers send to the others passes at a low rate."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from scenarios.faults import brokers
from scenarios.faults.broker_partition import NEEDS, BetweenBrokers
from scenarios.faults.declaration import About, Planned, seconds
from scenarios.problems import shown

_RATE = "[1-9][0-9]{0,5}(kbit|mbit)"


def _rate(text: str) -> str:
    if re.fullmatch(_RATE, text):
        return text
    raise ValueError(f"{shown(text)} is no rate; write kbit or mbit a second, such as 256kbit")


Rate = Annotated[str, AfterValidator(_rate), Field(json_schema_extra={"pattern": f"^{_RATE}$"})]


class BrokerSlowNetwork(BetweenBrokers):
    """Lets what each broker sends to all others, together, pass at a low rate."""

    about: ClassVar[About] = About(
        hits="broker",
        network="slow",
        noun="slow network",
        meaning="what it sent to the other brokers passed slowly",
        targets=brokers.TARGETS + NEEDS,
        witness=(
            "The kernel has sent packets of the broker at that rate, and some had to wait for it. "
            "Afterwards nothing limits it. " + brokers.IN_SYNC
        ),
        expects=(
            "Replicas get what the broker leads late, so that writes of a coordinator, and its "
            "answers, take longer; one that takes longer than `offsets.commit.timeout.ms` fails. A "
            "rate too low for the heartbeats to the controller has the broker fenced, as "
            "`broker.partition` has. What it receives passes as ever, as does what clients send "
            "and get. The delay of packets (`netem`) is not offered."
        ),
        undo=(
            "Removes the limit. From the journal alone nothing is left to undo: `groupquake heal` "
            "ends all containers of the run, and their networks with them."
        ),
    )

    fault: Literal["broker.slow-network"]
    rate: Rate
    """How much passes a second, such as `256kbit`."""

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned(
            f"remove the limit after {seconds(self.for_ms)}", for_ms=self.for_ms, rate=self.rate
        )
