"""The token of an OAUTHBEARER client without a token endpoint."""

import pytest

from scenarios.client_properties import PropertiesError
from scenarios.oauth_token import token


def test_a_life_that_is_no_number_is_an_error() -> None:
    assert token({"sasl.oauthbearer.config": "principal=me lifeSeconds=60"}).count(".") == 2
    with pytest.raises(PropertiesError, match="lifeSeconds 'abc' is no number of seconds"):
        token({"sasl.oauthbearer.config": "lifeSeconds=abc"})
