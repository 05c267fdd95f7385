"""The members of a group in virtual time: each process plans what it asks next.

Who drives says how long requests and pauses take, and what a member does that has its share.
"""

from typing import Generic, TypeVar

from reference_coordinator.classic.effects import Response
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import Step, step
from reference_coordinator.driving.client import ENDED, IN
from reference_coordinator.driving.driver import Agenda
from reference_coordinator.driving.simulation import Exchange, Process, Simulation

Member = TypeVar("Member", bound=Process)


class GroupOfMembers(Simulation, Generic[Member]):
    """A group whose clients go on by themselves; `processes` are those that run."""

    def __init__(
        self, group: Group, profile: Profile, coordinator: Step = step,
        agenda: Agenda | None = None,
    ) -> None:  # fmt: skip
        super().__init__(group, profile, coordinator, agenda)
        self.processes: list[Member] = []

    # What who drives says.

    def ask(self, process: Member, api: str) -> None:
        """Let a process send a request."""
        raise NotImplementedError

    def settled(self, process: Member, api: str) -> None:
        """Plan what a process does that has its share; `api` is what was just answered."""
        raise NotImplementedError

    def pause_ms(self, *, failed: bool) -> float:
        """Return how long a process waits with its next request, if the last one failed or not."""
        raise NotImplementedError

    # What processes do.

    def kill(self, process: Member) -> None:
        """End a member's process without a word."""
        process.plans += 1
        if process in self.processes:
            self.processes.remove(process)

    def plan(self, process: Member, api: str, after_ms: float) -> None:
        """Let a process send a request after a time, unless it plans anything else by then."""
        process.plans += 1
        plan = process.plans

        def act() -> None:
            if process.plans == plan:
                self.ask(process, api)

        self.agenda.after(after_ms, act)

    def hear(self, process: Member, exchange: Exchange, response: Response) -> None:
        """Let a process make something of a response, and plan what it does next."""
        if process.client.request != exchange.id:
            return
        client = process.client = process.client.hearing(response)
        if client.phase is ENDED:
            self.kill(process)
        elif client.phase is IN:
            self.settled(process, exchange.api)
        else:
            failed = bool(response.error) and exchange.api != "HEARTBEAT"
            self.plan(process, client.next_api, self.pause_ms(failed=failed))
