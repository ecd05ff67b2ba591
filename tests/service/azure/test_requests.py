"""Requests: what is accepted, what is refused with which of Azure's codes, and how points are put on a grid."""

import json
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tests.service.azure.series import START, body, weekly
from tocsin_monitor.azure import AzureError, ChangePointRequest, DetectRequest, read_request

POINTS = [{"timestamp": (START + timedelta(days=day)).isoformat(), "value": day * 1.0} for day in range(20)]


def request(**given: Any) -> bytes:
    return json.dumps({"series": POINTS, "granularity": "daily", **given}).encode()


@pytest.mark.parametrize(
    ("sent", "code", "names"),
    [
        (b"not JSON", "InvalidJsonFormat", "JSON"),
        (b"[1, 2]", "InvalidJsonFormat", "object"),
        (b"{}", "RequiredSeries", "series"),
        (request(series=[]), "InvalidSeries", "at least 1"),
        (request(series=[{"value": 1.0}] * 8641), "InvalidSeries", "8640"),
        (request(series=[*POINTS, {"value": 1.0}]), "InvalidSeries", "point 20 needs a timestamp"),
        (request(series=[*POINTS, POINTS[3]]), "InvalidSeries", "point 20"),
        (request(series=[*POINTS, {"timestamp": "2019-03-01T00:00:00Z", "value": 1.0}]), "InvalidSeries", "half"),
        (request(series=[*POINTS, {"timestamp": "yesterday", "value": 1.0}]), "InvalidSeries", "yesterday"),
        (request(series=[*POINTS[:12], {"value": "much"}]), "InvalidSeries", "much"),
        (request(series=int("1" * 200)), "InvalidSeries", "valid array"),
        (request(series=[{"value": "x" * 200}] * 20), "InvalidSeries", "series.0.value"),
        (request(series=[*POINTS[:12], {"value": 1.7e308}]), "InvalidSeries", "1.7e+308"),
        (request(granularity="fortnightly"), "InvalidGranularity", "fortnightly"),
        (request(customInterval=0), "InvalidCustomInterval", "0"),
        (request(period=-1), "InvalidPeriod", "-1"),
        (request(sensitivity=100), "InvalidModelArgument", "99"),
        (request(maxAnomalyRatio=0.5), "InvalidModelArgument", "0.5"),
        (request(imputeMode="guess"), "InvalidImputeMode", "guess"),
        (request(imputeMode="fixed"), "InvalidImputeFixedValue", "imputeFixedValue"),
    ],
)
def test_what_is_wrong_is_named_with_azures_code(sent: bytes, code: str, names: str) -> None:
    with pytest.raises(AzureError) as refused:
        read_request(DetectRequest, sent).on_grid()
    assert refused.value.code == code
    assert names in str(refused.value)


def test_change_points_need_a_granularity() -> None:
    with pytest.raises(AzureError) as refused:
        read_request(ChangePointRequest, json.dumps({"series": POINTS}).encode())
    assert refused.value.code == "RequiredGranularity"


def test_unknown_fields_are_ignored_as_azure_does() -> None:
    assert read_request(DetectRequest, request(flavour="new")).sensitivity == 95


@pytest.mark.parametrize(
    ("granularity", "custom", "times", "steps"),
    [
        ("monthly", None, [f"{2018 + month // 12}-{month % 12 + 1:02}-28T00:00:00Z" for month in range(14)], range(14)),
        ("yearly", 2, [f"{1990 + 2 * year}-07-01T00:00:00" for year in range(12)], range(12)),
        ("minutely", 5, [f"2018-03-01T{(5 * k) // 60:02}:{(5 * k) % 60:02}:00+01:00" for k in range(13)], range(13)),
        ("none", None, [None] * 12, range(12)),
    ],
)
def test_points_are_put_on_the_grid_of_their_granularity(
    granularity: str, custom: int | None, times: list[str | None], steps: range
) -> None:
    points = [{"value": 1.0} if time is None else {"timestamp": time, "value": 1.0} for time in times]
    sent = request(series=points, granularity=granularity, customInterval=custom)
    assert read_request(DetectRequest, sent).steps().tolist() == list(steps)


@pytest.mark.parametrize(
    ("mode", "filled"),
    [("auto", np.nan), ("notFill", np.nan), ("previous", 4.0), ("linear", 5.0), ("zero", 0.0), ("fixed", -1.0)],
)
def test_missing_points_are_filled_as_asked(mode: str, filled: float) -> None:
    points = [point for point in POINTS if point["value"] != 5.0]
    values, steps = read_request(
        DetectRequest, request(series=points, imputeMode=mode, imputeFixedValue=-1.0)
    ).on_grid()
    assert steps.tolist() == [day for day in range(20) if day != 5]
    np.testing.assert_array_equal(values, [filled if day == 5 else day for day in range(20)])


def test_a_daily_series_is_read_as_sent() -> None:
    values, _ = read_request(DetectRequest, body(weekly(47))).on_grid()
    np.testing.assert_array_equal(values, weekly(47))
