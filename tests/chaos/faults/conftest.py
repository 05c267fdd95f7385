import threading

import pytest

from chaos.faults.member_evidence import MemberEvidence
from chaos.members import Members
from chaos.witness import Witness
from tests.chaos.fakes import TOKEN, FakeLoad


@pytest.fixture
def members(load: FakeLoad) -> Members:
    return Members(load.port, TOKEN)


@pytest.fixture
def witness(load: FakeLoad) -> Witness:
    return Witness({1: load.log.path})


@pytest.fixture
def evidence(witness: Witness) -> MemberEvidence:
    """Of `static-3`, that has to be silent for 100 ms."""
    return MemberEvidence("static-3", 50, 300, witness, lambda _: True)


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()
