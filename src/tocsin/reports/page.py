"""A detector's findings on one self-contained page: no network, no other files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tocsin import __version__
from tocsin.detection.incidents.incident import Incident, onset_text
from tocsin.reports.tables import (
    MOST_BESIDE,
    Chart,
    drawn_places,
    incident_rows,
    intervals_of,
    is_blamed,
    limits,
    part_rows,
    worst_severity,
)

if TYPE_CHECKING:
    from tocsin.detection.results import Result

# The most signals on a page, and the most features of one; the file stays below about 20 MB.
MOST_SIGNALS = 20
MOST_FEATURES = 8
MOST_POINTS = 200_000
MOST_ROWS = 500
# All observations around an incident are drawn, this many before and after; for a long one, this many at each end.
AROUND = 150
LONGEST = 3000

# How the columns of tables are set, by their headings.
_KINDS = {
    "what was seen": "seen",
    "signal": "name",
    "signal or place": "name",
    "feature": "feature",
    "finding": "seen",
    "people": "people",
}
_NUMBERS = frozenset(
    {
        "lasts", "lasted", "severity", "judged observations", "tolerated", "raised", "faults", "messages", "events",
        "incidents", "worst",
        "false alarms", "time in incidents", "acknowledged after",
    }
)  # fmt: skip

PROMISE = (
    "Alarms are decided by p-values in the signal's own past, so the threshold is a rate of false alarms. It is kept "
    "in the long run as long as the future resembles the past in one respect: how anomalous the most anomalous "
    "stretches are. True faults come on top, and nothing is guaranteed during warm-up."
)


@dataclass
class ReportText:
    """The text besides the charts: how each file was read, and what is guaranteed."""

    title: str
    files: list[tuple[str, str, list[str]]] = field(default_factory=list)  # file, in one line, its problems
    promised: str = ""
    notes: list[str] = field(default_factory=list)


def detection_page(results: Sequence["Result"], drawn: Sequence["Result"], text: ReportText) -> str:
    """The page. `results` are those of all signals, `drawn` those whose verdicts were kept."""
    kept = sorted(drawn, key=lambda result: worst_severity(result.incident_list), reverse=True)[:MOST_SIGNALS]
    shown = [Chart.of(result) for result in kept]
    charts = charts_of(shown)
    left = len(results) - len(shown)
    return filled_page(
        _text(files("tocsin") / "reports" / "assets" / "report.html"),
        charts,
        dated=bool(shown) and shown[0].columns["time"].dtype.kind == "M",
        title=escape(text.title),
        lead=escape(_lead(results)),
        signals=_signals(results),
        incidents=_incidents(results, [chart.signal for chart in shown], charts),
        left_out=f'<p class="note">The {left:,} signals with milder incidents or none are not drawn.</p>'
        if left
        else "",
        understood="".join(_file(*one) for one in text.files),
        promised=_paragraphs([*text.promised.splitlines(), *text.notes, PROMISE]),
    )


def charts_of(shown: Sequence[Chart]) -> list[dict[str, Any]]:
    """The data of the charts, together not too large for a page."""
    curves = sum(min(len(one.features), MOST_FEATURES) + 1 for one in shown)
    points = max(200, MOST_POINTS // max(curves, 1))
    return [_signal(chart, number, points) for number, chart in enumerate(shown)]


def filled_page(template: str, charts: Sequence[Mapping[str, Any]], *, dated: bool, **parts: str) -> str:
    """A page with charts; the template has the fields `parts`, `styles`, `data`, `script` and `version`."""
    data = {"dated": dated, "charts": charts}
    page = files("tocsin.reports") / "assets"
    uplot = chart_library()
    library = _text(uplot["uPlot.esm.js"]).replace("export { uPlot as default };", "")
    return Template(template).substitute(
        parts,
        styles=_text(uplot["uPlot.min.css"]) + _text(page / "report.css"),
        version=__version__,
        # A name in the data must neither close this element nor open another.
        data=json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        script=library + _text(page / "report.js"),
    )


def chart_library() -> dict[str, Any]:
    """The files of uPlot, which draws the charts of pages, by name; for other pages too."""
    return {one.name: one for one in (files("tocsin.reports") / "assets" / "uplot").iterdir()}


def _text(path: Any) -> str:
    text: str = path.read_text(encoding="utf-8")
    return text


def _lead(results: Sequence["Result"]) -> str:
    incidents = sum(len(result.incident_list) for result in results)
    observations = sum(result.observations for result in results)
    signals = f" of {len(results):,} signals" if len(results) > 1 else ""
    return f"{incidents:,} incident{'' if incidents == 1 else 's'} in {observations:,} observations{signals}"


def _file(label: str, line: str, problems: Sequence[str]) -> str:
    lines = "".join(f"<p>{escape(one)}</p>" for one in [line, *problems])
    return f'<div class="panel"><h3>{escape(label)}</h3>{lines}</div>'


def _paragraphs(lines: Sequence[str]) -> str:
    return f'<div class="panel">{"".join(f"<p>{escape(line)}</p>" for line in lines)}</div>'


def _signals(results: Sequence["Result"]) -> str:
    """The table by signal, or by feature of a single one, if there are several and some have incidents."""
    headings, rows = part_rows(results, top=MOST_ROWS)
    body = [f"<tr>{''.join(map(html_cell, headings, map(escape, row)))}</tr>" for row in rows]
    if not rows or (len(results) == 1 and len(results[0].judged.features) == 1):
        return ""
    table = html_table(headings, body)
    return f'<section aria-labelledby="signals"><h2 id="signals">By {headings[0]}</h2>{table}</section>'


def _incidents(results: Sequence["Result"], drawn: Sequence[str], charts: Sequence[Mapping[str, Any]]) -> str:
    incidents = [incident for result in results for incident in result.incident_list]
    if not incidents:
        return '<div class="panel"><p>No incidents.</p></div>'
    headings, rows = incident_rows(incidents, top=MOST_ROWS, many=len(results) > 1, intervals=intervals_of(results))
    body = []
    for incident, cells in rows:
        number = drawn.index(incident.signal) if incident.signal in drawn else None
        began = incident.began_earliest if onset_text(incident) else incident.start
        target = "" if number is None else target_of(began, incident.end, number, charts[number])
        target += "" if number is None else _first_charts(incident, charts[number])
        body.append(f"<tr{target}>{''.join(map(_cell, headings, cells, [number is not None] * len(cells)))}</tr>")
    more = (
        f'<p class="note">The {MOST_ROWS} most severe of {len(incidents):,}.</p>' if len(incidents) > MOST_ROWS else ""
    )
    return html_table(headings, body) + more


def html_table(headings: Iterable[str], rows: Iterable[str]) -> str:
    """A table of rows that are already HTML."""
    head = "".join(f'<th scope="col"{_class(heading)}>{heading}</th>' for heading in headings)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def html_cell(heading: str, text: str) -> str:
    """A cell of a table; the text is already HTML. Without the heading above it, a number needs its name."""
    name = f' data-name="{heading}"' if heading in _NUMBERS else ""
    return f"<td{_class(heading)}{name}>{text}</td>"


def _class(heading: str) -> str:
    return f' class="{"number" if heading in _NUMBERS else _KINDS.get(heading, "short")}"'


def target_of(first: Any, last: Any, number: int, chart: Mapping[str, Any]) -> str:
    """Where a chart shows an incident, with as much around it as it lasts: attributes of a row."""
    start, end = _seconds(np.array([first, last]))
    room = max(end - start, 30 * chart["step"])
    low, high = max(start - room, chart["start"]), min(end + room, chart["end"])
    return f' data-chart="{number}" data-from="{low}" data-to="{high}"'


def _first_charts(incident: Incident, chart: Mapping[str, Any]) -> str:
    """Which charts of a signal show the features that contributed most: an attribute of a row."""
    titles = [one["title"] for one in chart["charts"]]
    first = [str(titles.index(name)) for name in incident.features[:MOST_BESIDE] if name in titles]
    return f' data-first="{" ".join(first)}"' if first else ""


def _cell(heading: str, text: str, linked: bool) -> str:
    shown = escape(text)
    if heading == "start" and linked:
        shown = f'<button type="button">{shown}</button>'
    return html_cell(heading, shown)


def _signal(chart: Chart, number: int, points: int) -> dict[str, Any]:
    columns = chart.columns
    time = _seconds(columns["time"])
    warm = columns["warm"]
    judged = int(np.argmax(warm)) if warm.any() else len(time) - 1
    charts = [_values(chart, feature, time, points) for feature in chart.features[:MOST_FEATURES]]
    at = _picked(columns["severity"], chart.incidents, points)
    alarm = columns["alarm"]
    charts.append(
        {
            "title": "severity: how anomalous it is over all views (usual: below 1)",
            "time": time[at].tolist(),
            "severity": _numbers(columns["severity"][at]),
            "alarms": [time[alarm].tolist(), _numbers(columns["severity"][alarm])],
            "onsets": _onsets(chart.incidents),
            "incidents": _spans(chart.incidents),
        }
    )
    return {
        "number": number,
        "name": chart.signal,
        "start": float(time[0]),
        "end": float(time[-1]),
        "step": float(np.median(np.diff(time))) if len(time) > 1 else 1.0,
        "warm_up": [[float(time[0]), float(time[judged])]] if judged else [],
        "charts": charts,
    }


def _values(chart: Chart, feature: str | None, time: NDArray[np.float64], points: int) -> dict[str, Any]:
    value, forecast = (chart.of_feature(name, feature) for name in ("value", "forecast"))
    at = _picked(value, chart.incidents, points)
    bottom, top = limits(value, 0.06, 0.06)
    low, high = (one[at] for one in chart.expected_range(feature, bottom, top))
    usual_low, usual_high = (np.clip(one, bottom, top)[at] for one in chart.usual_range(feature))
    alarm = chart.alarms(feature)
    blamed = [incident for incident in chart.incidents if is_blamed(incident, feature)]
    return {
        "title": feature or (f"value [{chart.unit}]" if chart.unit else "value"),
        "range": [bottom, top],
        "time": time[at].tolist(),
        "value": _numbers(value[at]),
        "forecast": _numbers(np.where((forecast >= bottom) & (forecast <= top), forecast, np.nan)[at]),
        "low": _numbers(low),
        "high": _numbers(high),
        "usual_low": _numbers(usual_low),
        "usual_high": _numbers(usual_high),
        "alarms": [time[alarm].tolist(), _numbers(value[alarm])],
        "onsets": _onsets(blamed),
        "incidents": _spans(blamed),
    }


def _picked(values: NDArray[Any], incidents: Sequence[Incident], points: int) -> NDArray[np.intp]:
    """Which observations are drawn: `drawn_places`, and all around incidents."""
    kept = np.zeros(len(values), dtype=np.bool_)
    kept[drawn_places(values, points)] = True
    for incident in sorted(incidents, key=lambda incident: -incident.severity)[:MOST_ROWS]:
        first, last = max(incident.first - AROUND, 0), incident.last + AROUND + 1
        kept[first : min(last, first + LONGEST)] = True
        kept[max(first, last - LONGEST) : last] = True
    return np.flatnonzero(kept)


def _spans(incidents: Sequence[Incident]) -> list[list[float]]:
    return [_seconds(np.array([incident.start, incident.end])).tolist() for incident in incidents]


def _onsets(incidents: Sequence[Incident]) -> list[list[float]]:
    """In which time those that were noticed late began."""
    late = [incident for incident in incidents if onset_text(incident)]
    return [_seconds(np.array([one.began_earliest, one.start])).tolist() for one in late]


def _seconds(times: NDArray[Any]) -> NDArray[np.float64]:
    if times.dtype.kind == "M":
        return times.astype("datetime64[ns]").astype(np.int64) / 1e9
    return times.astype(np.float64)


def _numbers(values: NDArray[Any]) -> list[float | None]:
    """Six digits are more than a screen shows."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]
