import argparse
from dataclasses import replace

import pytest

from loadtest.configs import MemberConfig, ProducerConfig
from loadtest.options import add_arguments, configs_of


def given(*arguments):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(arguments)


def test_options_describe_one_group():
    configs = configs_of(
        given(
            *("--group", "g", "--topic", "t", "--session-timeout", "6s"),
            *("--static-members", "1", "--dynamic-members", "2", "--produce-rate", "5"),
        )
    )
    static = MemberConfig(
        *("g-static-0", "g", "static", "g-static-0", ("t",), "range"),
        session_timeout_ms=6_000,
        heartbeat_interval_ms=2_000,
        max_poll_interval_ms=300_000,
        commit_interval_ms=1_000,
    )
    dynamic = replace(static, name="g-dynamic-0", kind="dynamic", instance_id=None)
    assert configs.members == (static, dynamic, replace(dynamic, name="g-dynamic-1"))
    assert configs.producers == (ProducerConfig("producer-0", "t", 5.0),)
    assert len(configs) == 4


def test_without_a_rate_nothing_is_written_to_anybodys_topic():
    assert configs_of(given()).producers == ()


def test_a_session_longer_than_the_usual_poll_interval_stretches_it():
    member = configs_of(given("--session-timeout", "10m")).members[0]
    assert member.max_poll_interval_ms == 600_000
    assert member.heartbeat_interval_ms == 3_000


def test_values_are_checked_at_the_command_line(capsys):
    for option, values, problem in (
        ("--session-timeout", ("10", "0s", "soon"), "argument --session-timeout: "),
        ("--static-members", ("-1", "many"), " is no number of members"),
        ("--produce-rate", ("-1", "-0.5", "nan", "inf", "many"), " is no number of records a sec"),
    ):
        for value in values:
            with pytest.raises(SystemExit):
                given(option, value)
            error_line = capsys.readouterr().err
            assert problem in error_line
            assert value in error_line
