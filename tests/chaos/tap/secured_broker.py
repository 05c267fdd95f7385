"""A real broker with listeners for TLS and SASL."""

from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from chaos.clusters.ports import free_ports
from chaos.clusters.process import ProcessCluster
from tests.chaos.tap.certificates import Authority

PASSWORD = "of-plain-7c1f"
SCRAM_PASSWORD = "of-scram-93ab"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class Secured:
    """One broker with two more listeners: SASL_SSL, and SSL that asks for a certificate."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = Authority(folder)
        self.client = self.authority.issue("client")
        sasl, ssl = free_ports(2)
        self.sasl, self.ssl = f"127.0.0.1:{sasl}", f"127.0.0.1:{ssl}"
        self.cluster = ProcessCluster("tap-secured", folder / "brokers", brokers=1)
        listeners = {
            "PLAINTEXT": f"127.0.0.1:{self.cluster.brokers[0].port}",
            "SASL_SSL": self.sasl,
            "SSL": self.ssl,
            "CONTROLLER": self.cluster._voters[1],
        }
        self.cluster._config = {
            "listeners": ",".join(f"{name}://{at}" for name, at in listeners.items()),
            "listener.security.protocol.map":
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.authority.issue("broker"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.ca,
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl_ssl.plain.sasl.jaas.config":
                f'{PLAIN} user_alice="{PASSWORD}";',
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": SCRAM,
            "group.initial.rebalance.delay.ms": 100,
        }  # fmt: skip

    def prepare(self):
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result()
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        user = UserScramCredentialUpsertion("bob", scram, SCRAM_PASSWORD.encode())
        admin.alter_user_scram_credentials([user])["bob"].result()
