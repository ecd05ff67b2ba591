"""Results as notebooks show them: a small picture of the signal, and a table of its incidents."""

from collections.abc import Sequence
from html import escape

import numpy as np

from tocsin.conformal.scorer import Floats
from tocsin.detection.result import Result
from tocsin.reports.result_text import cells, headline, promise, told_together, worst

WIDTH, HEIGHT, POINTS = 900, 90, 450
MOST_ROWS, MOST_SIGNALS = 10, 4
HEADINGS = ("start", "lasts", "ended", "how rare", "severity", "what was seen")
LINE, INCIDENT = "#1f4e79", "#c00000"
_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top"


def page(results: Sequence[Result]) -> str:
    """HTML without scripts or external resources."""
    if not results:
        return "<p>no signals</p>"
    many = len(results) > 1
    shown = sorted(results, key=lambda result: -max((one.severity for one in result.incident_list), default=-1.0))
    parts = [_text(told_together(results).splitlines()[0], "font-weight:600")] if many else []
    for result in shown[:MOST_SIGNALS]:
        parts += [_text(headline(result), "font-weight:600" if not many else ""), _picture(result)]
    if len(shown) > MOST_SIGNALS:
        parts.append(_text(f"and {len(shown) - MOST_SIGNALS:,} more signals", "color:gray"))
    parts.append(_text(promise(results)))
    content = "".join(parts)
    return f'<div style="max-width:{WIDTH}px;font-size:13px">{content}{_table(results)}</div>'


def _text(text: str, style: str = "") -> str:
    return f'<div style="margin:3px 0;{style}">{escape(text)}</div>'


def _picture(result: Result) -> str:
    """The first feature, or that of the worst incident, as a line, with incidents shaded."""
    count = len(result)
    if not count:
        return ""
    blamed = worst([result], 1)
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
        f'<path d="{_path(result.verdicts.value[:, 0, feature])}" fill="none" stroke="{LINE}" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )


def _path(values: Floats) -> str:
    """The smallest and largest value of each piece, so that no spike is lost; nothing where values are missing."""
    edges = np.linspace(0, len(values), min(len(values), POINTS) + 1).astype(np.intp)
    starts = edges[:-1]
    low, high = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
    there = np.isfinite(low) & np.isfinite(high)
    if not there.any():
        return ""
    bottom, top = float(low[there].min()), float(high[there].max())
    scale = (HEIGHT - 6) / ((top - bottom) or 1.0)
    steps: list[str] = []
    pen = "M"
    for start, least, most in zip(starts, low, high, strict=True):
        if not np.isfinite(least) or not np.isfinite(most):
            pen = "M"
            continue
        x = WIDTH * start / len(values)
        steps.append(f"{pen}{x:.1f} {HEIGHT - 3 - scale * (least - bottom):.1f}")
        if most > least:
            steps.append(f"L{x:.1f} {HEIGHT - 3 - scale * (most - bottom):.1f}")
        pen = "L"
    return "".join(steps)


def _table(results: Sequence[Result]) -> str:
    shown = worst(results, MOST_ROWS)
    if not shown:
        return ""
    many = len(results) > 1
    rows = [_row("th", ["signal", *HEADINGS] if many else HEADINGS)]
    for result, incident in shown:
        rows.append(_row("td", ([result.signal] if many else []) + cells(result, incident)))
    more = sum(len(result.incident_list) for result in results) - len(shown)
    left = _text(f"and {more:,} more in .incidents", "color:gray") if more else ""
    content = "".join(rows)
    return f'<table style="border-collapse:collapse;font-size:12px">{content}</table>{left}'


def _row(tag: str, texts: Sequence[str]) -> str:
    # The last column may be long; all others stay on one line.
    styles = [*[f"{_CELL};white-space:nowrap"] * (len(texts) - 1), _CELL]
    content = (f'<{tag} style="{style}">{escape(text)}</{tag}>' for text, style in zip(texts, styles, strict=True))
    return f"<tr>{''.join(content)}</tr>"
