"""The faults: how each is injected, witnessed and undone.

In: one target of a step of the plan, and whatever can act on it.
Out: a thing broken and put right, and findings from a witness other than whoever broke it.
It may import the control channel's client and the witness, and knows neither plan nor journal.
"""

from chaos.faults.interface import Fault, Finding, Kind
from chaos.faults.member_restart import MemberRestart

__all__ = ["Fault", "Finding", "Kind", "MemberRestart"]
