"""At which version of an API a field or a rule begins: one name, one number, one source each.

Source: the message schemas (`clients/src/main/resources/common/message/*.json`) and the KIP named.
"""

from collections.abc import Mapping

FIRST_JOIN_WITH_REBALANCE_TIMEOUT = 1
"""JoinGroup has a rebalance timeout beside the session timeout (KIP-62)."""
FIRST_TWO_STEP_JOIN = 4
"""JoinGroup answers a new dynamic member MEMBER_ID_REQUIRED and its id first (KIP-394)."""
FIRST_JOIN_WITH_INSTANCE_ID = 5
"""JoinGroup has `group.instance.id`, in requests and in the leader's list of members (KIP-345)."""
FIRST_JOIN_WITH_PROTOCOL_TYPE = 7
"""JoinGroup's response has the protocol type, and null where it has no protocol (KIP-559)."""
FIRST_JOIN_WITH_REASON = 8
"""JoinGroup has a reason in free text (KIP-800)."""
FIRST_JOIN_WITH_SKIP_ASSIGNMENT = 9
"""JoinGroup tells a replaced static leader that it leads, and to skip the assignment (KIP-814)."""
FIRST_JOIN_WITH_JOIN_REASON = 10
"""JoinGroup has a reason that the coordinator acts by (KIP-423, never released)."""

FIRST_SYNC_WITH_INSTANCE_ID = 3
"""SyncGroup has `group.instance.id` (KIP-345)."""
FIRST_SYNC_WITH_PROTOCOL = 5
"""SyncGroup has to name type and name of the protocol; a wrong one is refused (KIP-559)."""

FIRST_HEARTBEAT_WITH_INSTANCE_ID = 3
"""Heartbeat has `group.instance.id` (KIP-345)."""

FIRST_BATCH_LEAVE = 3
"""LeaveGroup names members in a list, by member id or `group.instance.id` (KIP-345)."""
FIRST_LEAVE_WITH_REASON = 5
"""LeaveGroup has a reason in free text for each member (KIP-800)."""

FIRST_COMMIT_WITH_GENERATION = 1
"""OffsetCommit names generation and member: v0 stores offsets in ZooKeeper."""
FIRST_COMMIT_WITH_INSTANCE_ID = 7
"""OffsetCommit has `group.instance.id` (KIP-345)."""
FIRST_COMMIT_WITH_GROUP_ERRORS = 9
"""OffsetCommit to an unknown group has an error of its own, GROUP_ID_NOT_FOUND (KIP-848)."""
FIRST_COMMIT_WITH_TOPIC_ID = 10
"""OffsetCommit names topics by id (KIP-848)."""

FIRST_TRANSACTION_WITH_GROUP_ERRORS = 6
"""TxnOffsetCommit to an unknown group has the error of OffsetCommit v9 (KIP-1319)."""

FIRST_FETCH_WITH_ERROR = 2
"""OffsetFetch has an error of the group beside those of partitions, and null for all topics."""
FIRST_FETCH_WITH_LEADER_EPOCH = 5
"""OffsetFetch tells the leader epoch of an offset (KIP-320)."""
FIRST_FETCH_WITH_STABLE = 7
"""OffsetFetch may ask for no offset while a transaction has one of it open (KIP-447)."""
FIRST_FETCH_WITH_GROUPS = 8
"""OffsetFetch asks for several groups (KIP-709)."""
FIRST_FETCH_WITH_MEMBER = 9
"""OffsetFetch names the member (KIP-848)."""
FIRST_FETCH_WITH_TOPIC_ID = 10
"""OffsetFetch names topics by id (KIP-848)."""

FIRST_DESCRIBE_WITH_INSTANCE_ID = 4
"""DescribeGroups tells the members' `group.instance.id` (KIP-345)."""
FIRST_DESCRIBE_WITH_GROUP_ERRORS = 6
"""DescribeGroups of an unknown group answers GROUP_ID_NOT_FOUND (KIP-1043)."""

FIRST_DELETE_WITH_MESSAGE = 3
"""DeleteGroups tells why a group was not deleted, in words (4.4.0)."""

FIRST_WITH_INSTANCE_ID: Mapping[str, int] = {
    "JOIN_GROUP": FIRST_JOIN_WITH_INSTANCE_ID,
    "SYNC_GROUP": FIRST_SYNC_WITH_INSTANCE_ID,
    "HEARTBEAT": FIRST_HEARTBEAT_WITH_INSTANCE_ID,
    "OFFSET_COMMIT": FIRST_COMMIT_WITH_INSTANCE_ID,
}
"""The requests in which a member names its `group.instance.id` beside its member id (KIP-345)."""

FIRST_WITH_ERROR: Mapping[str, int] = {
    "SYNC_GROUP": FIRST_SYNC_WITH_PROTOCOL,
    "OFFSET_COMMIT": FIRST_COMMIT_WITH_GROUP_ERRORS,
    "DESCRIBE_GROUPS": FIRST_DESCRIBE_WITH_GROUP_ERRORS,
}
"""The requests with an error that earlier versions lack (KIP-559, KIP-848, KIP-1043)."""

FIRST_FLEXIBLE: Mapping[str, int] = {
    "JOIN_GROUP": 6, "SYNC_GROUP": 4, "HEARTBEAT": 4, "LEAVE_GROUP": 4, "OFFSET_COMMIT": 8,
    "OFFSET_FETCH": 6, "DESCRIBE_GROUPS": 5, "DELETE_GROUPS": 2,
}  # fmt: skip
"""Messages have tagged fields (KIP-482)."""

FIRST_UNANSWERED_FAILURE: Mapping[str, int] = {"JOIN_GROUP": 6, "SYNC_GROUP": 4}
"""Kafka 2.4 leaves these unanswered where the coordinator fails over them (mended in 2.5)."""

LIBRDKAFKA: Mapping[str, int] = {
    "JOIN_GROUP": 5, "SYNC_GROUP": 3, "HEARTBEAT": 3, "LEAVE_GROUP": 1, "OFFSET_COMMIT": 9,
}  # fmt: skip
"""The versions of librdkafka's requests (2.x)."""
NEWEST: Mapping[str, int] = {
    "JOIN_GROUP": 9, "SYNC_GROUP": 5, "HEARTBEAT": 4, "LEAVE_GROUP": 5, "OFFSET_COMMIT": 9,
}  # fmt: skip
"""The newest versions of the classic protocol's requests, as the Java client sends them."""
