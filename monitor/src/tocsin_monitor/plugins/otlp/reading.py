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
from tocsin_monitor.sources.payloads import NameTemplate

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
                _Metric(metric, naming, intake, identity, attributes).take()


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


class _Metric:
    """One metric of one resource."""

    def __init__(
        self,
        metric: Any,
        naming: Naming[OtlpRule],
        intake: Intake,
        identity: Mapping[str, str],
        more: Mapping[str, str],
    ) -> None:
        self._metric, self._naming, self._intake = metric, naming, intake
        self._identity, self._more = identity, more

    def take(self) -> None:
        kind = self._metric.WhichOneof("data")
        points = getattr(self._metric, kind).data_points if kind else ()
        if not points:
            return
        found = self._naming.rule_for(self._metric.name)
        if found is None:
            self._intake.ignore("metrics that no rule matches", len(points))
            return
        # A gauge has none, and a summary is always cumulative.
        fixed = {"gauge": _DELTA, "summary": _CUMULATIVE}.get(kind)
        temporality = getattr(self._metric, kind).aggregation_temporality if fixed is None else fixed
        if temporality not in (_DELTA, _CUMULATIVE):
            why = f"{self._metric.name!r:.200} has no aggregation temporality: it must be delta or cumulative"
            self._intake.refuse(why, len(points))
            return
        cumulative = temporality == _CUMULATIVE
        for point in points:
            if not point.time_unix_nano:
                self._intake.refuse(f"{self._metric.name!r:.200}: a point needs time_unix_nano")
            elif kind == "gauge" or kind == "sum":
                grows = cumulative and self._metric.sum.is_monotonic
                self._number(point, found[1], grows)
            else:
                self._histogram(point, found[1], cumulative)

    def _number(self, point: Any, template: NameTemplate | None, grows: bool) -> None:
        signal = self._signal("", point, template)
        if signal is None:
            return
        value = _value(point)
        if grows and math.isfinite(value):
            increase = self._intake.increase(signal, point.time_unix_nano, (value,), _start(point))
            if increase is None:
                return
            value = increase.totals[0] / increase.seconds
        self._intake.add(signal, point.time_unix_nano, value)

    def _histogram(self, point: Any, template: NameTemplate | None, cumulative: bool) -> None:
        """How many values there were, and their mean: two signals. Without a sum, there is no mean."""
        count = self._signal(".count", point, template)
        mean = None if count is None else self._signal(".mean", point, template)
        if count is None or mean is None:
            return
        number, total = float(point.count), _sum(point)
        seconds = 1.0
        if _missing(point):
            number = math.nan
        elif cumulative:
            increase = self._intake.increase(count, point.time_unix_nano, (number, total), _start(point))
            if increase is None:
                return
            seconds, (number, total) = increase.seconds, increase.totals
        self._intake.add(count, point.time_unix_nano, number / seconds)
        if _missing(point) or not math.isnan(total):
            self._intake.add(mean, point.time_unix_nano, total / number if number > 0 else math.nan)

    def _signal(self, suffix: str, point: Any, template: NameTemplate | None) -> str | None:
        labels = {**self._identity, **_labels(point.attributes), "__name__": self._metric.name + suffix}
        return self._intake.signal(template, labels, 1, self._more)


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
