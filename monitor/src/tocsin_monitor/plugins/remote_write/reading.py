"""Prometheus remote write, versions 1 and 2: the messages become observations."""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from tocsin_monitor.plugins.remote_write import RemoteWriteRule
from tocsin_monitor.push.intake import MOST_LABELS, Intake, MalformedError, Naming
from tocsin_monitor.push.protobuf import messages

MILLISECOND = 10**6  # ns
NATIVE_HISTOGRAMS = "native histograms"

_SAMPLE = ["double value = 1", "int64 timestamp = 2"]
_V1 = messages(
    "prometheus",
    {
        "WriteRequest": ["repeated TimeSeries timeseries = 1"],
        "TimeSeries": ["repeated Label labels = 1", "repeated Sample samples = 2", "repeated bytes histograms = 4"],
        "Label": ["string name = 1", "string value = 2"],
        "Sample": _SAMPLE,
    },
)
_V2 = messages(
    "io.prometheus.write.v2",
    {
        "Request": ["repeated string symbols = 4", "repeated TimeSeries timeseries = 5"],
        "TimeSeries": [
            "repeated uint32 labels_refs = 1",
            "repeated Sample samples = 2",
            "repeated bytes histograms = 3",
        ],
        "Sample": _SAMPLE,
    },
)


def read_remote_write(body: bytes, version: int, naming: Naming[RemoteWriteRule], intake: Intake) -> None:
    """Take the samples of a request; MalformedError if it is none.

    Samples that are not finite, such as the marker that a series ended, are missing values. Native histograms are
    refused: the specifications want the sender to know of samples that a receiver does not support.
    """
    try:
        request = (_V1["WriteRequest"] if version == 1 else _V2["Request"]).FromString(body)
    except DecodeError:
        raise MalformedError(f"the body is not a remote write request of version {version}") from None
    intake.visit(len(request.timeseries))
    for labels, series in _labels_v1(request) if version == 1 else _labels_v2(request):
        _take(labels, series.samples, len(series.histograms), naming, intake)


def _take(
    labels: dict[str, str], samples: Sequence[Any], histograms: int, naming: Naming[RemoteWriteRule], intake: Intake
) -> None:
    if not samples and not histograms:
        return
    name = labels.get("__name__", "")
    found = naming.rule_for(name)
    if found is None:
        intake.ignore("series that no rule matches", len(samples))
        if histograms:
            intake.ignore(NATIVE_HISTOGRAMS, histograms)
        return
    if histograms:
        why = f"{name!r:.100} is a native histogram, which is not supported: send a recording rule of it"
        intake.refuse(why, histograms, NATIVE_HISTOGRAMS)
    if not samples:
        return
    rule, template = found
    signal = intake.signal(template, labels, len(samples))
    if signal is None:
        return
    add = intake.add_rate if rule.rate else intake.add
    for sample in samples:
        add(signal, sample.timestamp * MILLISECOND, sample.value)


# Of labels, at most one more is read than a series may have: then it is refused.
def _labels_v1(request: Any) -> Iterator[tuple[dict[str, str], Any]]:
    for series in request.timeseries:
        yield {label.name: label.value for label in islice(series.labels, MOST_LABELS + 1)}, series


def _labels_v2(request: Any) -> Iterator[tuple[dict[str, str], Any]]:
    symbols = list(request.symbols)
    if symbols[:1] not in ([], [""]):
        raise MalformedError(f"the first symbol must be empty, got {symbols[0]!r:.60}")
    for series in request.timeseries:
        refs = series.labels_refs[: 2 * MOST_LABELS + 2]
        if len(series.labels_refs) % 2 or any(ref >= len(symbols) for ref in refs):
            raise MalformedError(f"labels must be pairs of symbols 0 to {len(symbols) - 1}, got {refs!r:.60}")
        yield {symbols[name]: symbols[value] for name, value in list(pairwise(refs))[::2]}, series
