"""What a tap is started with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.clusters.ports import HOST


@dataclass(frozen=True, slots=True)
class BrokerTls:
    """How the tap speaks TLS to the brokers. Files are PEM.

    `ca` holds the authorities that it trusts [the system's]; `certificate` and `key` are shown to
    brokers that ask for them (mTLS). Without `check_names` a broker's host name may be any.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = None
    check_names: bool = True


@dataclass(frozen=True, slots=True)
class TapSettings:
    """Where the brokers are, and how both sides of the tap speak.

    `brokers` are `host:port` by broker id, as the brokers advertise them to clients; those that
    appear later are learned from answers. `folder` gets one folder per broker with its `group.log`,
    and `tap.log`. Towards the brokers the tap speaks plain text, or TLS with `broker_tls`; towards
    clients plain text.
    """

    brokers: Mapping[int, str]
    folder: Path
    broker_tls: BrokerTls | None = None
    host: str = HOST
    """The address of this machine that clients connect to."""
