from pathlib import Path

import pytest

from chaos.kafka_client import for_kafka_python
from scenarios.client_properties import PropertiesError, read

SASL = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=me\nsasl.password=a=b\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "client.properties"


def test_a_file_of_known_properties_becomes_client_arguments(file: Path, tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    more = f"\n# a comment\nssl.ca.location = {authority}\n"
    file.write_text(SASL + more + "ssl.endpoint.identification.algorithm=none\n")
    assert for_kafka_python(read(file)) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": "a=b",
        "ssl_cafile": str(authority),
        "ssl_check_hostname": False,
    }


def test_a_bad_line_is_named_with_the_way_out(file: Path) -> None:
    for line, complaint in (
        ("sasl.mechanisms=PLAIN", "did you mean 'sasl.mechanism'?"),
        ("security.protocol=TLS", "'TLS' is not known; "),
        ("security.protocol", "no property; write key=value"),
        ("ssl.ca.location=/nowhere/ca.pem", "no such file: /nowhere/ca.pem"),
        ("sasl.username=a\nsasl.username=b", "given twice; remove one of the two"),
    ):
        file.write_text(f"# first\n{line}\n")
        with pytest.raises(PropertiesError) as caught:
            read(file)
        assert str(caught.value).startswith(f"{file}:{2 + line.count(chr(10))}: ")
        assert complaint in str(caught.value)
        assert "\n" not in str(caught.value)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(PropertiesError, match="cannot be read"):
        read(file)


def test_properties_that_do_not_go_together_are_an_error(file: Path) -> None:
    file.write_text(SASL)
    for left_out in ("sasl.mechanism", "sasl.username", "sasl.password"):
        some = {key: value for key, value in read(file).items() if key != left_out}
        with pytest.raises(PropertiesError, match=r"sasl\.mechanism, sasl\.username and"):
            for_kafka_python(some)
    with pytest.raises(PropertiesError, match=r"sasl\.username: needs security\.protocol SASL"):
        for_kafka_python({"sasl.username": "me"})
