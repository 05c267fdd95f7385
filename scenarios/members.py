"""The members of a group, as the experiment names them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from scenarios.clients import Client
from scenarios.model import Group, Kind, StaticMembers


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member of the workload. Its name is also its `client.id`, and unique in the experiment.

    A static member's name is its `instance_id`; a dynamic one has none.
    """

    name: str
    group: str
    kind: Kind
    instance_id: str | None
    client: Client = "librdkafka"


def members_of(group: Group) -> Iterator[MemberSpec]:
    """Yield the members of a group in the file's order.

    Static members are numbered from 0 in each entry, dynamic ones through the whole group.
    """
    numbers = count()
    for entry in group.members:
        for n in range(entry.count):
            if isinstance(entry, StaticMembers):
                instance_id = entry.instance_id.replace("{n}", str(n))
                yield MemberSpec(instance_id, group.name, "static", instance_id, entry.client)
            else:
                name = f"{group.name}-dynamic-{next(numbers)}"
                yield MemberSpec(name, group.name, "dynamic", None, entry.client)
