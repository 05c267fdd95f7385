"""Brokers with TLS, SASL and ACLs, of an authority of the test's own."""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.admin import KafkaAdminClient

from chaos.clusters.interface import BrokerInfo
from chaos.clusters.ports import HOST, free_ports
from chaos.clusters.process import ProcessCluster
from tests.chaos.tap.certificates import Authority

_LOGIN = "org.apache.kafka.common.security"
PREFIX = "groupquake-"
ALLOWED = {
    "topic": (ResourceType.TOPIC, ("CREATE", "DELETE", "DESCRIBE", "READ", "WRITE")),
    "group": (ResourceType.GROUP, ("READ", "DESCRIBE", "DELETE")),
}
"""What a user needs for groups and topics whose names have the prefix."""


class Secured(ProcessCluster):
    """A cluster with an open listener for itself, one for SASL_SSL, one for mTLS, one for OAuth.

    On the others a user may do what an ACL allows; `alice` is the user of each mechanism.
    """

    def __init__(
        self, folder: Path, brokers: int = 1, version: str = "4.3.0", **more: str | int
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(folder)
        self.password = secrets.token_hex(12)
        self.certificate = self.authority.issue("alice")
        ports = iter(free_ports(3 * brokers))
        self.listeners = {
            name: [f"{HOST}:{next(ports)}" for _ in range(brokers)]
            for name in ("SASL_SSL", "SSL", "OAUTH")
        }
        config = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SASL_SSL:SASL_SSL,SSL:SSL,OAUTH:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.authority.issue("broker")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.ca),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config":
                f'{_LOGIN}.plain.PlainLoginModule required user_alice="{self.password}";',
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config":
                f"{_LOGIN}.scram.ScramLoginModule required;",
            "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.oauth.oauthbearer.sasl.jaas.config":
                f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required"
                ' unsecuredLoginStringClaim_sub="broker";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "group.initial.rebalance.delay.ms": 1000,
            **more,
        }  # fmt: skip
        super().__init__(
            f"secured-{os.getpid()}-{folder.name}", folder / "brokers", brokers=brokers,
            version=version, config=config,
        )  # fmt: skip

    def _properties(self, info: BrokerInfo) -> str:
        own = [
            f"PLAINTEXT://{info.address}",
            f"CONTROLLER://{self._voters[info.id]}",
            *(f"{name}://{at[info.id - 1]}" for name, at in self.listeners.items()),
        ]
        return f"{super()._properties(info)}listeners={','.join(own)}\n"

    def at(self, listener: str) -> str:
        """Return the bootstrap servers of a listener."""
        return ",".join(self.listeners[listener])

    def prepare(self) -> None:
        """Let alice work on what has the prefix."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        user = UserScramCredentialUpsertion("alice", scram, self.password.encode())
        admin.alter_user_scram_credentials([user])["alice"].result(30)
        wanted = [
            AclBinding(
                kind, PREFIX, ResourcePatternType.PREFIXED, "User:alice", "*",
                AclOperation[operation], AclPermissionType.ALLOW,
            )
            for kind, operations in ALLOWED.values()
            for operation in operations
        ]  # fmt: skip
        for answer in admin.create_acls(wanted).values():
            answer.result(30)

    @contextmanager
    def topic(self, name: str) -> Iterator[str]:
        """Inside the block there is a topic of a partition, with the prefix before its name."""
        admin, name = AdminClient({"bootstrap.servers": self.bootstrap}), PREFIX + name
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        yield name
        admin.delete_topics([name])[name].result(30)

    @contextmanager
    def denied(self, of: str, operation: str, name: str = PREFIX) -> Iterator[None]:
        """Inside the block, alice may not do something with what has a prefix, or a name."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        pattern = ResourcePatternType.PREFIXED if name == PREFIX else ResourcePatternType.LITERAL
        words = (ResourceType[of.upper()], name, pattern, "User:alice", "*")
        denial = (*words, AclOperation[operation], AclPermissionType.DENY)

        def await_count(count: int) -> None:
            deadline = time.monotonic() + 60
            while len(admin.describe_acls(AclBindingFilter(*denial)).result(30)) != count:
                assert time.monotonic() < deadline
                time.sleep(0.05)

        admin.create_acls([AclBinding(*denial)])[AclBinding(*denial)].result(30)
        await_count(1)
        try:
            yield
        finally:
            admin.delete_acls([AclBindingFilter(*denial)])[AclBindingFilter(*denial)].result(30)
            await_count(0)

    def names(self) -> tuple[set[str], set[str]]:
        """Return all topics and groups."""
        client = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            return set(client.list_topics()), {one["group_id"] for one in client.list_groups()}
        finally:
            client.close()

    def properties(self, mechanism: str) -> dict[str, str]:
        """Return the client properties of alice; the password is in `PASSWORD`."""
        trust = {"ssl.ca.location": str(self.authority.ca)}
        match mechanism:
            case "mTLS":
                return {
                    "security.protocol": "SSL",
                    "ssl.certificate.location": str(self.certificate),
                    "ssl.key.location": str(self.certificate),
                    **trust,
                }
            case "OAUTHBEARER":
                return {
                    "security.protocol": "SASL_SSL",
                    "sasl.mechanism": "OAUTHBEARER",
                    "enable.sasl.oauthbearer.unsecure.jwt": "true",
                    "sasl.oauthbearer.config": "principal=alice",
                    **trust,
                }
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": "${env:ALICES_PASSWORD}",
            **trust,
        }
