"""Who is let in to a cluster, and what they are allowed there, is known before anything is made."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from groupquake.access import connected, require_allowed, require_answer, require_rights
from groupquake.exits import NotAuthorizedError
from scenarios import load
from scenarios.client_properties import read_checked
from scenarios.renaming import prefixed
from tests.chaos.tap.certificates import Authority
from tests.groupquake.conftest import Command, Done
from tests.secured import ALLOWED, PREFIX, Secured

NOWHERE = "127.0.0.1:1"
LEFT_OUT = "ssl.certificate.location"
WRONG: Mapping[str, tuple[str, str, dict[str, str]]] = {
    "password": ("SASL_SSL", "PLAIN", {"sasl.password": "guessed"}),
    "password of SCRAM": ("SASL_SSL", "SCRAM-SHA-512", {"sasl.password": "guessed"}),
    "mechanism": ("SASL_SSL", "PLAIN", {"sasl.mechanism": "SCRAM-SHA-256"}),
    "authority": ("SASL_SSL", "PLAIN", {"ssl.ca.location": "another.pem"}),
    "certificate": ("SSL", "mTLS", {LEFT_OUT: "mallory.pem", "ssl.key.location": "mallory.pem"}),
    "plain to TLS": ("SSL", "none", {}),
    "SASL to mTLS": ("SSL", "PLAIN", {}),
    "TLS to plain": ("open", "PLAIN", {}),
    "SASL to plain": ("open", "PLAIN", {"security.protocol": "SASL_PLAINTEXT"}),
}
"""What alice has wrong: where she goes, with the properties of which mechanism, and changes."""
COMMANDS = {
    "run": ("run", "small.yaml", "--cluster", "external", "--client-properties"),
    "doctor": ("doctor", "--client-properties"),
    "group": ("group", "remove-members", "any", "--all", "--config"),
}
CUT_OFF = "{fault: net.partition, target: all, group: static, at: 1s, for: 1s, brokers: %s}"
RIGHTS = [(of, operation) for of, (_, every) in ALLOWED.items() for operation in every]


@pytest.fixture
def properties(secured: Secured, tmp_path: Path) -> Path:
    """The properties of alice, as they should be."""
    return written(secured, "PLAIN", tmp_path)


def written(secured: Secured, mechanism: str, folder: Path, **changes: str) -> Path:
    file = folder / "alice.properties"
    found = {} if mechanism == "none" else secured.properties(mechanism) | changes
    file.write_text("".join(f"{key}={value}\n" for key, value in found.items()))
    return file


def run(groupquake: Command, secured: Secured, file: Path, *more: object) -> Done:
    """Run the small experiment as alice."""
    words = (*COMMANDS["run"], file, "--bootstrap", secured.at("SASL_SSL"), "--no-report")
    return groupquake(*words, *more, env={"ALICES_PASSWORD": secured.password})


@pytest.fixture
def _password(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICES_PASSWORD", secured.password)


@pytest.mark.cluster
@pytest.mark.usefixtures("_password")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_user_that_is_not_let_in_is_named(wrong: str, secured: Secured, tmp_path: Path) -> None:
    Authority(tmp_path).ca.rename(tmp_path / "another.pem")
    Authority(tmp_path).issue("mallory")
    listener, mechanism, changes = WRONG[wrong]
    here = {key: str(tmp_path / one) if one.endswith("pem") else one
            for key, one in changes.items()}  # fmt: skip
    properties = read_checked(written(secured, mechanism, tmp_path, **here))
    at = secured.bootstrap if listener == "open" else secured.at(listener)
    user = {"mTLS": here.get(LEFT_OUT), "none": "ANONYMOUS"}.get(mechanism, "alice")
    with pytest.raises(NotAuthorizedError) as refused:
        require_answer(at, properties)
    said = str(refused.value)
    assert said.startswith(f"authentication failed for {user} at {at}")
    assert len(said.splitlines()) == 1
    assert "guessed" not in said
    assert secured.password not in said


@pytest.mark.cluster
def test_a_token_lets_a_user_in(secured: Secured, tmp_path: Path) -> None:
    """The clients that look at the cluster make it themselves, unlike those of librdkafka."""
    login, at = read_checked(written(secured, "OAUTHBEARER", tmp_path)), secured.at("OAUTH")
    require_answer(at, login)
    with connected(at, login) as client:
        assert len(client.describe_cluster()["brokers"]) == 1


@pytest.mark.cluster
@pytest.mark.usefixtures("small")
def test_each_command_says_who_was_not_let_in_or_that_nobody_answers(
    groupquake: Command, secured: Secured, tmp_path: Path
) -> None:
    file = written(secured, "PLAIN", tmp_path, **{"sasl.password": "guessed"})
    for name, words in COMMANDS.items():
        for at, code, message in (
            (secured.at("SASL_SSL"), 77, "authentication failed for alice at "),
            (NOWHERE, 69, f"no answer from {NOWHERE}: "),
        ):
            more = ("--timeout", "1s") if name == "group" else ()
            done = groupquake(*words, file, "--bootstrap", at, *more)
            assert done.code == code, done.err
            assert done.err.startswith(f"groupquake: {message}")
            assert len(done.err.splitlines()) == 1


@pytest.mark.cluster
@pytest.mark.usefixtures("_password")
def test_a_missing_right_is_named_with_what_allows_it(
    secured: Secured, properties: Path, small: Path
) -> None:
    """Those of every run, and those that single faults need, which alice has not."""
    login, at = read_checked(properties), secured.at("SASL_SSL")
    external = ["cluster.kind=external", f"cluster.bootstrap={at}"]

    def refused(*faults: str) -> str:
        experiment = prefixed(load(small).override([*external, *faults]), PREFIX)
        with connected(at, login) as client, pytest.raises(NotAuthorizedError) as error:
            require_rights(client, experiment, at, login)
        return str(error.value)

    before = secured.names()
    for of, operation in RIGHTS:
        with secured.denied(of, operation):
            said = refused()
        assert f"{of.upper()}_AUTHORIZATION_FAILED: not allowed: {operation}; " in said
        assert said.count("not allowed") == 1
    for fault, of, operation, resource in (
        (
            "{fault: topic.add-partitions, topic: orders, to: 9, at: 1s}",
            "topic",
            "ALTER",
            f"--topic {PREFIX}",
        ),
        (CUT_OFF % "{coordinator-of: static}", "topic", "DESCRIBE", "--topic __consumer_offsets"),
        (CUT_OFF % "controller", "cluster", "DESCRIBE", "--cluster"),
    ):
        said = refused(f"faults=[{fault}]")
        assert f"{of.upper()}_AUTHORIZATION_FAILED: not allowed: {operation}; " in said
        assert f" --operation {operation.capitalize()} {resource}" in said
    assert secured.names() == before


@pytest.mark.cluster
@pytest.mark.usefixtures("small")
def test_a_run_without_a_right_makes_nothing_and_doctor_tells_of_it(
    groupquake: Command, secured: Secured, properties: Path, tmp_path: Path
) -> None:
    before = secured.names()
    with secured.denied("group", "DELETE"):
        done = run(groupquake, secured, properties)
        asked = groupquake(
            *(*COMMANDS["doctor"], properties, "--bootstrap", secured.at("SASL_SSL")),
            *("--prefix", PREFIX),
            env={"ALICES_PASSWORD": secured.password},
        )
    assert done.code == 77, done.err
    assert "GROUP_AUTHORIZATION_FAILED: not allowed: DELETE; " in done.err.splitlines()[-1]
    assert secured.names() == before
    assert not (tmp_path / "runs").exists()
    assert asked.code == 77
    missing = f"DELETE of groups called {PREFIX}groupquake-doctor"
    assert f"no         {missing}" in asked.out
    assert asked.out.startswith(f"no run is possible: not allowed: {missing}")
    assert asked.out.count("costs: no run is possible") == 1


def test_what_a_client_was_refused_is_named_and_another_error_is_not(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    require_allowed(history, "")
    first = {"member": "clerk-0", "group": "g", "event": "created"}
    for error, named in (
        ("JoinGroup failed: Broker: Group authorization failed", "GROUP_AUTHORIZATION_FAILED"),
        ("TOPIC_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"),
        ("Broker: Unknown member", None),
    ):
        refused = {"member": "clerk-0", "group": "g", "event": "error", "error": error}
        history.write_text(f"{json.dumps(first)}\n{json.dumps(refused)}\n")
        if named is None:
            require_allowed(history, "trial-")
            continue
        with pytest.raises(NotAuthorizedError, match=f"^member clerk-0: {named}: .*'trial-'"):
            require_allowed(history, "trial-")
