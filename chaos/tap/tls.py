"""TLS from the tap to the brokers."""

import ssl

from chaos.errors import ChaosError
from chaos.tap.settings import BrokerTls


def to_brokers(settings: BrokerTls) -> ssl.SSLContext:
    """Return how the tap connects to brokers. Raises ChaosError if a file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=settings.ca)
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, settings.key, settings.key_password or "")
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(f) for f in (settings.ca, settings.certificate, settings.key) if f)
        raise ChaosError(f"TLS to the brokers: {files}: {error}; give PEM files") from error
    context.check_hostname = settings.check_names
    return context
