"""Results as pictures that notebooks show."""

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

from tocsin.detection import SignalResult
from tocsin.detection.result import Result
from tocsin.reports.picture import detection_figure


def figure_of(results: Sequence[Result]) -> Any:
    """The picture of `draw_detection`, in the caller's time zone, as a figure."""
    try:
        figure = detection_figure([_drawable(result) for result in results])
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: pip install 'tocsin[plot]' ({error})") from error
    zones = {result.origin.zone for result in results}
    if len(zones) == 1 and (zone := zones.pop()) is not None:
        _tell_times_in(figure, zone)
    # Notebooks ask for this; a figure that is not of pyplot has nothing of the kind.
    figure._repr_png_ = partial(_png, figure)
    return figure


def _tell_times_in(figure: Any, zone: str) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    for axes in figure.axes:
        most = 10 if axes.get_position().width > 0.5 else 5  # so that none runs into the next
        locator = AutoDateLocator(tz=zone, minticks=2, maxticks=most)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=80)
    return file.getvalue()


def _drawable(result: Result) -> SignalResult:
    incidents = result.incidents_within()
    return SignalResult(
        result.signal, result.judged.observed, incidents, columns=result.columns, audit=result.audit,
        interval=result.interval,
    )  # fmt: skip
