"""The classic group protocol: `step` decides what one event does to one group.

In go a group's state, an event and a profile; out come the next state and its effects.
It knows `kafka_protocol`, and no clock, randomness, threads, logging, network or Spark.
`README.md` is the theory of operation; `CLASSIC` is what it brings as a group protocol.
"""

from reference_coordinator.classic.bodies import BODIES, as_sent
from reference_coordinator.classic.effects import Effect, Response
from reference_coordinator.classic.events import Event
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import profile_for, profile_named
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import step
from reference_coordinator.classic.timeline import ROW_KEY
from reference_coordinator.protocol import GroupProtocol

ClassicProtocol = GroupProtocol[Group, Event, Effect, Response, Profile]
"""The type of `CLASSIC`, and of bundles with another `step`: coordinators that break a rule."""

CLASSIC: ClassicProtocol = GroupProtocol(
    new_group=Group,
    step=step,
    profile_named=profile_named,
    profile_for=profile_for,
    bodies=BODIES,
    as_sent=as_sent,
    row_key=ROW_KEY,
)
"""The classic protocol, up to Kafka 4.x the default of every client."""

__all__ = ["CLASSIC", "ClassicProtocol"]
