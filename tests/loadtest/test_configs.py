from loadtest.configs import MemberConfig, ProducerConfig, configs_of, spawn_rate

STATIC = MemberConfig(
    *("static-0", "calm", "static", "static-0", ("orders",), "cooperative-sticky"),
    session_timeout_ms=6_000,
    heartbeat_interval_ms=500,
    max_poll_interval_ms=60_000,
    commit_interval_ms=1_000,
)
DYNAMIC = MemberConfig(
    *("lively-dynamic-0", "lively", "dynamic", None, ("orders",), "roundrobin"),
    session_timeout_ms=8_000,
    heartbeat_interval_ms=1_500,
    max_poll_interval_ms=300_000,
    commit_interval_ms=2_000,
)


def test_an_experiment_becomes_a_roster(experiment_file):
    configs = configs_of(str(experiment_file))
    assert len(configs) == 4
    assert configs.members[0] == STATIC
    assert configs.members[1].instance_id == "static-1"
    assert configs.members[2] == DYNAMIC
    assert configs.producers == (ProducerConfig("producer-0", "orders", 25.0),)


def test_thousands_of_members_start_within_twenty_seconds_if_they_are_cheap():
    assert spawn_rate(["librdkafka"] * 5_000) == 20
    assert spawn_rate(["wire"] * 5_000) == 250
    assert spawn_rate(["wire"] * 100 + ["librdkafka"] * 900) == 20
