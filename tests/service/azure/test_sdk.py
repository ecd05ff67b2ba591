"""The unchanged client library of Azure Anomaly Detector against a real monitor, as its own samples use it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pandas as pd
import pytest
from azure.ai.anomalydetector import AnomalyDetectorClient
from azure.ai.anomalydetector.models import (
    TimeGranularity,
    TimeSeriesPoint,
    UnivariateChangePointDetectionOptions,
    UnivariateDetectionOptions,
)
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

from tests.service.azure.series import START, body, weekly
from tests.service.process import MonitorProcess

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with MonitorProcess(tmp_path_factory.mktemp("azure")) as process:
        process.start()
        yield process.address, process.make_token("read")
        process.stop()
        assert "Traceback" not in process.log.read_text()


@pytest.fixture
def series(tmp_path: Path) -> list[TimeSeriesPoint]:
    """As the samples read it, from a file with a time and a value on each line."""
    values = weekly(700)
    values[650] += 2e7
    path = tmp_path / "request-data.csv"
    pd.Series(values, pd.date_range(START, periods=700, name="time")).to_csv(path, header=False)
    rows = pd.read_csv(path, header=None, encoding="utf-8", parse_dates=[0]).iterrows()
    return [TimeSeriesPoint(timestamp=row[0], value=row[1]) for _, row in rows]


@pytest.mark.parametrize("version", ["v1.0", "v1.1"])
def test_the_samples_work_unchanged(monitor: tuple[str, str], series: list[TimeSeriesPoint], version: str) -> None:
    address, token = monitor
    client = AnomalyDetectorClient(address, AzureKeyCredential(token), api_version=version)
    request = UnivariateDetectionOptions(series=series, granularity=TimeGranularity.DAILY)
    whole = client.detect_univariate_entire_series(request)
    assert whole.is_anomaly[650]
    assert sum(whole.is_anomaly) < 14
    assert whole.period == 7
    assert len(whole.expected_values) == len(whole.upper_margins) == len(whole.severity) == 700
    newest = client.detect_univariate_last_point(request)
    assert not newest.is_anomaly
    assert newest.suggested_window == 268
    change = client.detect_univariate_change_point(
        UnivariateChangePointDetectionOptions(series=series, granularity=TimeGranularity.DAILY)
    )
    assert not any(change.is_change_point)
    assert len(change.confidence_scores) == 700


def test_errors_are_those_that_the_client_knows(monitor: tuple[str, str], series: list[TimeSeriesPoint]) -> None:
    address, token = monitor
    client = AnomalyDetectorClient(address, AzureKeyCredential(token))
    with pytest.raises(HttpResponseError) as refused:
        client.detect_univariate_entire_series(UnivariateDetectionOptions(series=series[:5]))
    assert refused.value.status_code == 400
    assert refused.value.model.code == "InvalidSeries"
    assert "5 points are too few" in refused.value.model.message
    assert "from 268 points on" in refused.value.model.message
    with pytest.raises(ClientAuthenticationError):
        AnomalyDetectorClient(address, AzureKeyCredential("wrong")).detect_univariate_last_point(
            UnivariateDetectionOptions(series=series)
        )
    with pytest.raises(HttpResponseError, match="features of one signal"):
        list(client.list_multivariate_models())


def test_the_largest_series_is_taken_and_other_versions_are_not(monitor: tuple[str, str]) -> None:
    address, token = monitor
    headers = {"Ocp-Apim-Subscription-Key": token}
    url = f"{address}/anomalydetector/v1.1/timeseries/changepoint/detect"
    whole = httpx.post(url, content=body(weekly(8640)), headers=headers, timeout=300)
    assert whole.status_code == 200
    assert len(whole.json()["isChangePoint"]) == 8640
    assert httpx.post(url.replace("v1.1", "v2"), content=body(weekly(47)), headers=headers).status_code == 404
    # Nothing was changed, so nothing is in the access log.
    assert httpx.post(url, content=b"{", headers=headers).json()["code"] == "InvalidJsonFormat"
