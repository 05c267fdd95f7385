"""What a client cannot do on a secured cluster, or with an assignor, is said beforehand."""

import itertools

import pytest
from click import UsageError

from groupquake.access import require_allowed
from groupquake.clients.programs import require_able
from groupquake.exits import NotAuthorizedError
from scenarios import Experiment, ScenarioError, load
from scenarios.client_properties import PropertiesError
from scenarios.clients import ADAPTERS, Client
from tests.loadtest.loads import of_one_group

SASL = {"security.protocol": "SASL_SSL", "sasl.username": "alice", "sasl.password": "secret"}
KEY = {"security.protocol": "SSL", "ssl.certificate.location": "a", "ssl.key.password": "secret"}


def experiment(client: Client, tmp_path, assignor="roundrobin") -> Experiment:
    members = [{"kind": "dynamic", "count": 1, "client": client}]
    file = tmp_path / "able.yaml"
    file.write_text(of_one_group("g", members, assignor=assignor))
    return load(file)


MECHANISMS = {
    "PLAIN": set(),
    "SCRAM-SHA-256": {"sarama"},
    "SCRAM-SHA-512": {"sarama"},
    "OAUTHBEARER": {"sarama", "franz-go", "kafkajs", "aiokafka", "kafka-python"},
}


def test_mechanisms(tmp_path):
    for mechanism, refusing in MECHANISMS.items():
        refused = {}
        for name in (*ADAPTERS, "librdkafka", "librdkafka-process"):
            try:
                require_able(experiment(name, tmp_path), {**SASL, "sasl.mechanism": mechanism})
            except UsageError as error:
                refused[name] = error.message.partition(", only")[0]
        wanted = {name: f"client {name} has no sasl.mechanism {mechanism}" for name in refusing}
        assert refused == wanted


@pytest.mark.parametrize("name", ["franz-go", "sarama"])
def test_encrypted_keys(name, tmp_path):
    with pytest.raises(UsageError, match=f"client {name} reads no encrypted key"):
        require_able(experiment(name, tmp_path), KEY)
    require_able(experiment("kafkajs", tmp_path), KEY)


def test_a_secret_of_several_lines_is_refused_where_a_program_would_read_it(tmp_path):
    given = {**SASL, "sasl.mechanism": "PLAIN", "sasl.password": "secret\nhidden"}
    with pytest.raises(PropertiesError, match="password: has several lines") as refused:
        require_able(experiment({"command": ["./mine"]}, tmp_path), given)
    assert "hidden" not in str(refused.value)
    for name in ("librdkafka", "librdkafka-process"):
        require_able(experiment(name, tmp_path), given)


ABLE = {
    "franz-go": {"range", "roundrobin", "cooperative-sticky"},
    "confluent-kafka": {"range", "roundrobin", "cooperative-sticky"},
    "sarama": {"range", "roundrobin"},
    "aiokafka": {"range", "roundrobin"},
    "kafka-python": {"range", "roundrobin"},
    "kafkajs": {"roundrobin"},
}


def test_assignors(tmp_path):
    for name, assignor in itertools.product(ABLE, ("range", "roundrobin", "cooperative-sticky")):
        if assignor in ABLE[name]:
            assert experiment(name, tmp_path, assignor).name == "own"
            continue
        problem = f"{name} has no assignor {assignor}; give group 'g' assignor: "
        with pytest.raises(ScenarioError, match=problem):
            experiment(name, tmp_path, assignor)


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("GroupAuthorizationFailedError: [Error 30]", "GROUP"),
        ("GROUP_AUTHORIZATION_FAILED: Not authorized to access group", "GROUP"),
        ("Broker: Topic authorization failed", "TOPIC"),
        ("kafka server: The client is not authorized to access this topic", "TOPIC"),
        (
            "KafkaJSProtocolError: Not authorized to access group: Group authorization failed",
            "GROUP",
        ),
    ],
)
def test_what_acls_refuse_in_the_words_of_each_client(error, what, tmp_path):
    history = tmp_path / "history.jsonl"
    history.write_text(f'{{"member": "m", "event": "error", "error": "{error}"}}\n')
    with pytest.raises(NotAuthorizedError, match=f"member m: {what}_AUTHORIZATION_FAILED"):
        require_allowed(history, "")
