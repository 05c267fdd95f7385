"""The properties of clients on a listener on the loopback that adds TLS itself."""

from scenarios.client_properties import without_tls


def test_tls_goes_and_sasl_stays() -> None:
    tls = {
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "a.pem",
        "ssl.key.location": "k",
    }
    assert without_tls({"security.protocol": "SSL", **tls}) == {"security.protocol": "PLAINTEXT"}
    sasl = {"sasl.mechanism": "PLAIN", "sasl.username": "me", "sasl.password": "p"}
    for name in ("SASL_SSL", "SASL_PLAINTEXT"):
        assert without_tls({"security.protocol": name, **sasl, **tls}) == {
            "security.protocol": "SASL_PLAINTEXT",
            **sasl,
        }
