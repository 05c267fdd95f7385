"""Locust's dispatcher for the members of an experiment: each stays where it is."""

from locust.dispatch import UsersDispatcher
from locust.runners import WorkerNode


class FixedWorkers(UsersDispatcher):
    """Gives no users to workers that come later, and moves none when a worker is lost.

    Locust's own would stop members on one worker to start them on another: rebalances that no fault
    of the plan explains.
    """

    def add_worker(self, worker_node: WorkerNode) -> None:
        """Leave the users where they are."""

    def remove_worker(self, worker_node: WorkerNode) -> None:
        """Leave the users where they are."""
