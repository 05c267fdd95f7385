"""What a tap is started with."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chaos.clusters.ports import HOST
from chaos.errors import ChaosError


@dataclass(frozen=True, slots=True)
class TapSettings:
    """Where the brokers are, and how both sides of the tap speak.

    `brokers` are `host:port` by broker id, as the brokers advertise them to clients; those that
    appear later are learned from answers. `folder` gets one folder per broker with its `group.log`,
    and `tap.log`. `client_properties` (`scenarios.client_properties`) say whether the tap speaks
    TLS to the brokers, and how: names and passwords of users have no place there. Towards clients
    it speaks plain text, at `host`, an address of this machine.
    """

    brokers: Mapping[int, str]
    folder: Path
    client_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    host: str = HOST

    @property
    def shows_certificate(self) -> bool:
        """Whether the tap shows brokers that ask for it a certificate, which has a name (mTLS)."""
        return "ssl.certificate.location" in self.client_properties

    def to_brokers(self) -> ssl.SSLContext | None:
        """Return how the tap connects to brokers, None for plain text.

        Raises ChaosError if a file cannot be used.
        """
        properties = self.client_properties
        if not properties.get("security.protocol", "").endswith("SSL"):
            return None
        certificate = properties.get("ssl.certificate.location")
        key = properties.get("ssl.key.location", certificate)
        files = [properties.get("ssl.ca.location"), certificate, key]
        try:
            context = ssl.create_default_context(cafile=files[0])
            if certificate is not None:
                context.load_cert_chain(certificate, key, properties.get("ssl.key.password", ""))
        except (OSError, ssl.SSLError) as error:
            named = ", ".join(dict.fromkeys(file for file in files if file))
            raise ChaosError(f"TLS to the brokers: {named}: {error}; give PEM files") from error
        context.check_hostname = properties.get("ssl.endpoint.identification.algorithm") != "none"
        return context
