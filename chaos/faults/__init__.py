"""The faults: how each is injected, witnessed and undone.

In: one target of a step of the plan, and whatever can act on it.
Out: a thing broken and put right, and findings from a witness other than whoever broke it.
It may import the control channel's client, the cluster's interface and releases, the witnesses and
the removal of members, and knows neither plan nor journal file.
"""

from chaos.faults.add_partitions import AddPartitions
from chaos.faults.broker_down import BrokerDown
from chaos.faults.broker_pause import BrokerPause
from chaos.faults.broker_probe import BrokerProbe
from chaos.faults.duplicate_instance import DuplicateInstance
from chaos.faults.interface import Fault, Finding, OneShot, Recoverable
from chaos.faults.member_evidence import MemberEvidence
from chaos.faults.member_kill import MemberKill
from chaos.faults.member_restart import MemberRestart
from chaos.faults.remove_members import RemoveMembers

__all__ = [
    "AddPartitions",
    "BrokerDown",
    "BrokerPause",
    "BrokerProbe",
    "DuplicateInstance",
    "Fault",
    "Finding",
    "MemberEvidence",
    "MemberKill",
    "MemberRestart",
    "OneShot",
    "Recoverable",
    "RemoveMembers",
]
