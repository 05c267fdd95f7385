"""The bundle of the classic protocol: its parts fit together as a replay uses them."""

from dataclasses import fields
from types import SimpleNamespace

import pytest

from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import Error
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import JoinResponse
from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.releases import NEWEST

JOIN = SimpleNamespace(
    id="r1",
    api="JOIN_GROUP",
    api_version=9,
    client_id="c",
    client_host="/127.0.0.1",
    request={
        "memberId": "",
        "groupInstanceId": None,
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 30_000,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
    },
)


def test_a_body_becomes_an_event_that_step_answers() -> None:
    event = CLASSIC.bodies[JOIN.api].event(JOIN, 5.0, Choices(new_member_id="c-1"))
    group, effects = CLASSIC.step(CLASSIC.new_group("g"), event, NEWEST)
    assert group.pending_joins == {"c-1"}
    responses = [effect.response for effect in effects if hasattr(effect, "response")]
    assert responses == [JoinResponse(Error.MEMBER_ID_REQUIRED, "c-1")]


def test_every_api_of_the_coordinator_has_a_body() -> None:
    assert CLASSIC.bodies.keys() == set(COORDINATOR_APIS)


@pytest.mark.parametrize(("version", "kept"), [(8, False), (9, True)])
def test_a_response_keeps_the_fields_of_its_version(version: int, *, kept: bool) -> None:
    sent = CLASSIC.as_sent(JoinResponse(0, skip_assignment=True), version)
    assert sent.skip_assignment is kept


def test_profiles_are_found_by_name_and_by_release() -> None:
    assert CLASSIC.profile_named("4.3.0") is NEWEST
    assert CLASSIC.profile_for("4.3.0", "java") is NEWEST
    assert CLASSIC.profile_for("4.3.0", "scala") is None


def test_the_key_of_a_row_is_among_its_columns() -> None:
    assert {*CLASSIC.row_key} <= {field.name for field in fields(CLASSIC.timeline_row)}
