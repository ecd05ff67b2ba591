"""Results as Python and notebooks show them: a few lines of text, a small page, a picture."""

import io
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from tocsin.conformal.scorer import Floats
from tocsin.data import duration_text
from tocsin.detection.incidents.audit import audit_together
from tocsin.detection.incidents.incident import Incident, time_text
from tocsin.reports.picture import detection_figure
from tocsin.reports.tables import drawn_places, incident_cells

if TYPE_CHECKING:
    from tocsin.detection.results import Result

# This many incidents get their own line: the most severe.
MOST_LINES = 5

WIDTH, HEIGHT, POINTS = 900, 90, 900
MOST_ROWS, MOST_SIGNALS = 10, 4
HEADINGS = ("start", "lasts", "ended", "how rare", "severity", "what was seen")
LINE, INCIDENT = "#1f4e79", "#c00000"
_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top"


def result_text(result: "Result") -> str:
    """What was judged, what was found and what is guaranteed."""
    return "\n".join([headline(result), findings_line([result]), *_lines([result])])


def results_text(results: Sequence["Result"]) -> str:
    """The same for many signals."""
    if not results:
        return "no signals"
    observations = sum(result.observations for result in results)
    first = f"{len(results)} signals, {observations:,} observations, {_every(results[0])}".removesuffix(", ")
    return "\n".join([first, findings_line(results), *_lines(results)])


def headline(result: "Result") -> str:
    """What was judged."""
    count = result.observations
    parts = [f"{result.signal}: {count:,} observation{'s' if count != 1 else ''}"]
    if len(result.features) > 1:
        parts.append(f"features {', '.join(result.features)}")
    if result.times is not None and len(result.times):
        parts.append(f"{local_time_text(result, result.times[0])} to {local_time_text(result, result.times[-1])}")
    return ", ".join(filter(None, [*parts, _every(result)]))


def _every(result: "Result") -> str:
    if result.interval is None or result.times is None:
        return ""
    dated = result.times.dtype.kind == "M"
    step = np.timedelta64(round(result.interval * 1e9), "ns") if dated else result.interval
    return f"every {duration_text(step)}"


def findings_line(results: Sequence["Result"]) -> str:
    """What was found, next to what is tolerated."""
    count = sum(len(result.incident_list) for result in results)
    audits = [result.audit for result in results if result.audit is not None]
    if not audits:
        return "; ".join(f"not judged: {result.error}" for result in results)
    audit = audits[0] if len(audits) == 1 else audit_together(audits)
    one = results[0]
    rate = f"an alarm rate of {one.alarm_rate}" if one.budget is None else f"a budget of {one.budget}"
    found = f"{count:,} incident{'s' if count != 1 else ''} at {rate}"
    if not audit.observations:
        return f"{found}; all of it is warm-up, which needs {one.warm_up:,} observations"
    tolerated = audit.promised * audit.observations
    return f"{found}, {tolerated:,.3g} tolerated since warm-up ({audit.in_words()})"


def local_time_text(result: "Result", time: object) -> str:
    """A readable time in the caller's time zone."""
    zone = result.origin.zone
    if zone is None or not isinstance(time, np.datetime64):
        return time_text(time)
    local = time.astype("datetime64[us]").item().replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(zone))
    return str(local.isoformat(sep=" ", timespec="auto" if local.second or local.microsecond else "minutes"))


def worst_incidents(results: Sequence["Result"], most: int) -> list[tuple["Result", Incident]]:
    """The most severe incidents, in order of severity."""
    found = [(result, incident) for result in results for incident in result.incident_list]
    return sorted(found, key=lambda one: (-one[1].severity, one[1].p))[:most]


def _row_cells(result: "Result", incident: Incident) -> list[str]:
    """An incident in words, with its start in the caller's time zone."""
    start = local_time_text(result, incident.start)
    return [*incident_cells(incident, start, result.interval), incident.explanation or ""]


def _lines(results: Sequence["Result"]) -> list[str]:
    shown = worst_incidents(results, MOST_LINES)
    rows = [([result.signal] if len(results) > 1 else []) + _row_cells(result, incident) for result, incident in shown]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    more = sum(len(result.incident_list) for result in results) - len(shown)
    return [*lines, *([f"  and {more:,} more in .incidents"] if more else [])]


def results_html(results: Sequence["Result"]) -> str:
    """HTML without scripts or external resources."""
    if not results:
        return "<p>no signals</p>"
    many = len(results) > 1
    shown = sorted(results, key=lambda result: -max((one.severity for one in result.incident_list), default=-1.0))
    parts = [_text(results_text(results).splitlines()[0], "font-weight:600")] if many else []
    for result in shown[:MOST_SIGNALS]:
        parts += [_text(headline(result), "font-weight:600" if not many else ""), _picture(result)]
    if len(shown) > MOST_SIGNALS:
        parts.append(_text(f"and {len(shown) - MOST_SIGNALS:,} more signals", "color:gray"))
    parts.append(_text(findings_line(results)))
    content = "".join(parts)
    return f'<div style="max-width:{WIDTH}px;font-size:13px">{content}{_table(results)}</div>'


def _text(text: str, style: str = "") -> str:
    return f'<div style="margin:3px 0;{style}">{escape(text)}</div>'


def _picture(result: "Result") -> str:
    """The first feature, or that of the worst incident, as a line, with incidents shaded."""
    count = len(result)
    if not count:
        return ""
    blamed = worst_incidents([result], 1)
    features = list(result.features)
    feature = features.index(blamed[0][1].features[0]) if blamed else 0
    bands = "".join(
        f'<rect x="{WIDTH * one.first / count:.1f}" y="0" height="{HEIGHT}" fill="{INCIDENT}" fill-opacity="0.25" '
        f'width="{max(WIDTH * (one.last - one.first + 1) / count, 1.5):.1f}"/>'
        for one in result.incidents_within()
    )
    named = _text(features[feature], "color:gray") if len(features) > 1 else ""
    return (
        f'{named}<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" height="{HEIGHT}" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(result.signal)}">{bands}'
        f'<path d="{_path(result.kept_verdicts.value[:, 0, feature])}" fill="none" stroke="{LINE}" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )


def _path(values: Floats) -> str:
    """`drawn_places` as a line; nothing where values are missing."""
    at = drawn_places(values, POINTS)
    shown = values[at]
    there = np.isfinite(shown)
    if not there.any():
        return ""
    bottom, top = float(shown[there].min()), float(shown[there].max())
    scale = (HEIGHT - 6) / ((top - bottom) or 1.0)
    steps, pen = [], "M"
    for place, value, known in zip(at, shown, there, strict=True):
        if known:
            steps.append(f"{pen}{WIDTH * place / len(values):.1f} {HEIGHT - 3 - scale * (value - bottom):.1f}")
        pen = "L" if known else "M"
    return "".join(steps)


def _table(results: Sequence["Result"]) -> str:
    shown = worst_incidents(results, MOST_ROWS)
    if not shown:
        return ""
    many = len(results) > 1
    rows = [_row("th", ["signal", *HEADINGS] if many else HEADINGS)]
    for result, incident in shown:
        rows.append(_row("td", ([result.signal] if many else []) + _row_cells(result, incident)))
    more = sum(len(result.incident_list) for result in results) - len(shown)
    left = _text(f"and {more:,} more in .incidents", "color:gray") if more else ""
    content = "".join(rows)
    return f'<table style="border-collapse:collapse;font-size:12px">{content}</table>{left}'


def _row(tag: str, texts: Sequence[str]) -> str:
    # The last column may be long; all others stay on one line.
    styles = [*[f"{_CELL};white-space:nowrap"] * (len(texts) - 1), _CELL]
    content = (f'<{tag} style="{style}">{escape(text)}</{tag}>' for text, style in zip(texts, styles, strict=True))
    return f"<tr>{''.join(content)}</tr>"


def figure_of(results: Sequence["Result"]) -> Any:
    """The picture of `draw_detection`, in the caller's time zone, as a figure."""
    try:
        figure = detection_figure(results)
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: pip install 'tocsin[plot]' ({error})") from error
    zones = {result.origin.zone for result in results}
    if len(zones) == 1 and (zone := zones.pop()) is not None:
        _tell_times_in(figure, zone)
    # Notebooks call this method, which only figures made by pyplot have.
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
