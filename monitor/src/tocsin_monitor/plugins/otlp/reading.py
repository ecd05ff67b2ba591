"""OpenTelemetry metrics: their data points become observations."""

import math
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, DataPointFlags, SummaryDataPoint

from tocsin_monitor.plugins.otlp import OtlpRule
from tocsin_monitor.push.intake import MOST_LABELS, Intake, MalformedError, Naming, label_name

# What tells one source of metrics from another. Other attributes of a resource, such as the version of its library, may
# change while it stays the same.
_IDENTITY = ("service.namespace", "service.name", "service.instance.id", "host.name")
_DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
_NO_VALUE = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK


def read_otlp(body: bytes, as_json: bool, naming: Naming[OtlpRule], intake: Intake) -> None:
    """Take the data points of a request; MalformedError if it is none."""
    request = _request(body, as_json)
    intake.visit(len(request.resource_metrics))
    for resource in request.resource_metrics:
        attributes = _labels(resource.resource.attributes)
        identity = {name: attributes[name] for name in map(label_name, _IDENTITY) if name in attributes}
        intake.visit(len(resource.scope_metrics))
        for scope in resource.scope_metrics:
            intake.visit(len(scope.metrics))
            attributes["otel_scope_name"] = scope.scope.name
            for metric in scope.metrics:
                _take(metric, naming, intake, identity, attributes)


def reply_otlp(refused: int, why: str | None, as_json: bool) -> bytes:
    """The reply to a request. Some of its points may have been refused."""
    partial = ExportMetricsPartialSuccess(rejected_data_points=refused, error_message=why or "")
    reply = ExportMetricsServiceResponse(partial_success=partial) if refused else ExportMetricsServiceResponse()
    return json_format.MessageToJson(reply, indent=None).encode() if as_json else bytes(reply.SerializeToString())


def _request(body: bytes, as_json: bool) -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    try:
        if as_json:
            if body.lstrip()[:1] != b"{":
                raise json_format.ParseError("it is no JSON object")
            json_format.Parse(body, request, ignore_unknown_fields=True)
        else:
            request.ParseFromString(body)
    except (DecodeError, json_format.ParseError, RecursionError, UnicodeDecodeError) as error:
        form = "JSON" if as_json else "protobuf"
        raise MalformedError(f"the body is not an ExportMetricsServiceRequest in {form}: {error!s:.200}") from None
    return request


def _take(
    metric: Any, naming: Naming[OtlpRule], intake: Intake, identity: Mapping[str, str], more: Mapping[str, str]
) -> None:
    """Take one metric of one resource."""
    kind = metric.WhichOneof("data")
    points = getattr(metric, kind).data_points if kind else ()
    if not points:
        return
    found = naming.rule_for(metric.name)
    if found is None:
        intake.ignore("metrics that no rule matches", len(points))
        return
    # A gauge has none, and a summary is always cumulative.
    fixed = {"gauge": _DELTA, "summary": _CUMULATIVE}.get(kind)
    temporality = getattr(metric, kind).aggregation_temporality if fixed is None else fixed
    if temporality not in (_DELTA, _CUMULATIVE):
        why = f"{metric.name!r:.200} has no aggregation temporality: it must be delta or cumulative"
        intake.refuse(why, len(points))
        return
    cumulative, template = temporality == _CUMULATIVE, found[1]

    def signal_of(point: Any, suffix: str = "") -> str | None:
        labels = {**identity, **_labels(point.attributes), "__name__": metric.name + suffix}
        return intake.signal(template, labels, 1, more)

    for point in points:
        if not point.time_unix_nano:
            intake.refuse(f"{metric.name!r:.200}: a point needs time_unix_nano")
        elif kind == "gauge" or kind == "sum":
            if (signal := signal_of(point)) is not None:
                _take_number(point, signal, intake, grows=cumulative and metric.sum.is_monotonic)
        elif (count := signal_of(point, ".count")) is not None and (mean := signal_of(point, ".mean")) is not None:
            _take_histogram(point, count, mean, intake, cumulative=cumulative)


def _take_number(point: Any, signal: str, intake: Intake, *, grows: bool) -> None:
    value = _value(point)
    if grows and math.isfinite(value):
        increase = intake.increase(signal, point.time_unix_nano, (value,), _start(point))
        if increase is None:
            return
        value = increase.totals[0] / increase.seconds
    intake.add(signal, point.time_unix_nano, value)


def _take_histogram(point: Any, count: str, mean: str, intake: Intake, *, cumulative: bool) -> None:
    """How many values there were, and their mean: two signals. Without a sum, there is no mean."""
    number, total = float(point.count), _sum(point)
    seconds = 1.0
    if _missing(point):
        number = math.nan
    elif cumulative:
        increase = intake.increase(count, point.time_unix_nano, (number, total), _start(point))
        if increase is None:
            return
        seconds, (number, total) = increase.seconds, increase.totals
    intake.add(count, point.time_unix_nano, number / seconds)
    if _missing(point) or not math.isnan(total):
        intake.add(mean, point.time_unix_nano, total / number if number > 0 else math.nan)


def _missing(point: Any) -> bool:
    return bool(point.flags & _NO_VALUE)


def _value(point: Any) -> float:
    kind = point.WhichOneof("value")
    return math.nan if kind is None or _missing(point) else float(getattr(point, kind))


def _sum(point: Any) -> float:
    """NaN if there is none, as for histograms of values that may be negative; a summary always has one."""
    return float(point.sum) if isinstance(point, SummaryDataPoint) or point.HasField("sum") else math.nan


def _start(point: Any) -> int | None:
    return point.start_time_unix_nano or None


def _labels(attributes: Iterable[Any]) -> dict[str, str]:
    # At most one more than a series may have: then it is refused.
    return {label_name(one.key): _text(one.value) for one in islice(attributes, MOST_LABELS + 1)}


def _text(value: Any) -> str:
    """A value of an attribute; lists and the like stay apart from one another, but cannot be read."""
    kind = value.WhichOneof("value")
    if kind in ("string_value", "int_value", "double_value"):
        return str(getattr(value, kind))
    if kind == "bool_value":
        return str(value.bool_value).lower()
    return str(value.SerializeToString(deterministic=True).hex())
