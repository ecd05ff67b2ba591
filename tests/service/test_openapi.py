"""The API against its own description: whatever is sent, the reply is one that the description knows."""

from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.cases import full
from tests.service.engine.helpers import until
from tocsin_monitor.config import ServerSettings, Settings
from tocsin_monitor.http.push import PROTOBUF, dialects
from tocsin_monitor.monitor import Monitor
from tocsin_monitor.observations import Batch, Observation
from tocsin_monitor.store import Store
from tocsin_monitor.tokens import hash_token, make_token

pytestmark = pytest.mark.slow

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ENDLESS = "/api/v1/stream"
OBSERVATIONS = "/api/v1/observations"
schemathesis.serializer.alias(PROTOBUF, "application/octet-stream")


@pytest.fixture(scope="module")
def described() -> Iterator[Any]:
    with TemporaryDirectory() as folder:
        server = ServerSettings(requests_per_second=1e9, burst=10**9, allowed_hosts=("testserver",))
        store = Store.open(f"sqlite:///{folder}/tocsin.db")
        monitor = Monitor(Settings(server=server, detector={"forecaster": "last-value", "views": ["error"]}), store)
        monitor.engine.start()
        try:
            until(lambda: monitor.engine.ready)
            # Silent at once, so that there is an incident with the number 1.
            monitor.engine.signals.create("there", features=None, detector=None, silent_after=1e-3, unit=None).result(
                30
            )
            monitor.engine.submit(Batch((Observation("there", None, (1.0,)),))).result(30)
            until(lambda: monitor.engine.overview()[0].silent)
            # With a token of our own: the first that is made by chance would shut us out.
            token = make_token()
            with store.transaction() as writer:
                writer.add_token("tester", "admin", hash_token(token), 0, None)
            headers = {"Authorization": f"Bearer {token}"}
            config = schemathesis.Config.from_dict(
                {"headers": headers, "generation": {"with-security-parameters": False}}
            )
            yield schemathesis.openapi.from_asgi("/api/v1/openapi.json", monitor.app, config=config, headers=headers)
            assert monitor.engine.ready
        finally:
            monitor.engine.stop()
            store.close()


def try_out(operation: Any, mode: GenerationMode, examples: int, checks: list[Any]) -> int:
    """Send examples of an operation; how many it were."""
    tried = 0

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(operation.as_strategy(generation_mode=mode))
    def asked(case: Any) -> None:
        nonlocal tried
        tried += 1
        case.call_and_validate(checks=checks)

    asked()
    return tried


@pytest.mark.parametrize("examples", [2, full(12)])
def test_replies_are_as_described(described: Any, examples: int) -> None:
    operations = [one for result in described.get_all_operations() if (one := result.ok()).path != ENDLESS]
    tried = [try_out(one, GenerationMode.POSITIVE, examples, CHECKS) for one in operations]
    assert len(tried) > 30
    assert sum(tried) > 0.4 * examples * len(tried)


@pytest.mark.parametrize("examples", [1, full(6)])
def test_what_is_not_as_described_is_refused(described: Any, examples: int) -> None:
    tried = []
    for operation in (result.ok() for result in described.get_all_operations()):
        # For what is pushed in formats of others, any bytes are as described.
        if operation.path not in (ENDLESS, *dialects()) and [*operation.iter_parameters(), *operation.body]:
            # Observations are refused one by one, within a reply of 200.
            checks = CHECKS if operation.path == OBSERVATIONS else [*CHECKS, negative_data_rejection]
            tried.append(try_out(operation, GenerationMode.NEGATIVE, examples, checks))
    assert len(tried) > 20
    assert sum(tried) > 0.6 * examples * len(tried)
