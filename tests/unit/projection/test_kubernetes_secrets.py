"""What is said of a Secret that the API server refuses."""

from typing import Any, cast

import pytest

from components.connection import Reply
from components.errors import ProjectionError
from components.projection.kubernetes_secrets import KubernetesSecrets
from tests.support.cases import tabled

BODY = {"metadata": {"namespace": "team-a", "name": "login"}}


class Refusing:
    """A connection to an API server that refuses each call in its own words."""

    def __init__(self, status: int, message: str) -> None:
        self._reply = Reply(status, {"message": message, "reason": "BadRequest"})

    def call(self, *_: Any, **__: Any) -> Reply:
        return self._reply


@tabled("status, message")
def test_a_webhook_that_refuses_a_secret_is_named_and_what_it_says_is_not_quoted(status: int, message: str):
    with pytest.raises(ProjectionError) as refused:
        KubernetesSecrets(cast("Any", Refusing(status, message))).create(BODY)
    assert "webhook rules.example.com" in refused.value.problem
    assert "webhook rules.example.com" in str(refused.value.fix)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "does not allow it: no"), (422, "refused to POST it: BadRequest")],
)
def test_what_the_api_server_itself_refuses_is_told_as_before(status: int, said: str):
    with pytest.raises(ProjectionError) as refused:
        KubernetesSecrets(cast("Any", Refusing(status, "no"))).create(BODY)
    assert said in refused.value.problem
