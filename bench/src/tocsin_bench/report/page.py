"""The report as one self-contained page."""

import base64
from collections.abc import Sequence
from html import escape
from importlib import resources

from tocsin_bench.report.pictures import Picture
from tocsin_bench.report.sheet import Cell, Column, Sheet
from tocsin_bench.report.summaries import status_counts
from tocsin_bench.results import BenchmarkResults

_READING = (
    "PA-F1 and Affiliation-F are F1 scores at the threshold that is best in hindsight: the first counts a labelled"
    " stretch as found if there is an alarm anywhere in it, the second counts how near alarms are to stretches."
    " FPR is the share of normal observations that raise an alarm at the threshold of PA-F1, and CalErr is how far"
    " FPR is from that threshold: with p-values that keep their promise, the threshold is the false positive rate."
    " AUC-PR and VUS-PR need no threshold: they say how well anomalies are ranked above the rest, the second with some"
    " tolerance for where a stretch begins and ends."
)
# A table with more rows than this is collapsed.
_MOST_ROWS = 40


def page(results: BenchmarkResults, sheets: Sequence[Sheet], pictures: Sequence[Picture]) -> str:
    """The whole page."""
    folder = resources.files("tocsin_bench.report")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    main = [_section(sheet.title, f"table-{place}", _table(sheet), sheet) for place, sheet in enumerate(sheets)]
    main[1:1] = [_figure(picture, f"figure-{place}") for place, picture in enumerate(pictures)]
    links = [(f"table-{place}", sheet.title) for place, sheet in enumerate(sheets)]
    links[1:1] = [(f"figure-{place}", picture.title) for place, picture in enumerate(pictures)]
    contents = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in links)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Benchmark of anomaly detectors</title>
<style>
{style}</style>
</head>
<body>
<h1>Benchmark of anomaly detectors</h1>
{_overview(results)}
<nav><ul>{contents}</ul></nav>
<section><h2>How to read the metrics</h2><p>{escape(_READING)}</p></section>
{"".join(main)}
<script>
{script}</script>
</body>
</html>
"""


def _overview(results: BenchmarkResults) -> str:
    """The number of runs by status, and facts about the whole run."""
    runs = results.runs()
    counts = status_counts(runs)
    files, datasets = len({run.file for run in runs}), len({run.dataset for run in runs})
    said = f"{len(runs)} runs on {files} files of {datasets} data sets: "
    said += ", ".join(f"{number} {status}" for status, number in counts.items())
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in results.about().items())
    return f"<p><strong>{escape(said)}</strong></p>\n<dl>{facts}</dl>"


def _section(title: str, name: str, table: str, sheet: Sheet) -> str:
    note = f"<p>{escape(sheet.note)}</p>" if sheet.note else ""
    body = f"{note}\n{table}"
    if len(sheet.rows) > _MOST_ROWS:
        body = f"<details><summary>{len(sheet.rows)} rows</summary>{body}</details>"
    return f'<section id="{name}"><h2>{escape(title)}</h2>{body}</section>\n'


def _figure(picture: Picture, name: str) -> str:
    data = base64.b64encode(picture.path.read_bytes()).decode("ascii")
    return (
        f'<section id="{name}"><h2>{escape(picture.title)}</h2><figure>'
        f'<div class="wide"><img alt="{escape(picture.title)}" src="data:image/png;base64,{data}"></div>'
        f"<figcaption>{escape(picture.note)}</figcaption></figure></section>\n"
    )


def _table(sheet: Sheet) -> str:
    headings = "".join(
        f"<th{_alignment(column)}><button>{escape(column.heading)}</button></th>" for column in sheet.columns
    )
    blocks = []
    for block in sheet.blocks:
        rows = ("".join(_cell(cell, column) for cell, column in zip(row, sheet.columns, strict=True)) for row in block)
        blocks.append("<tbody>" + "".join(f"<tr>{row}</tr>\n" for row in rows) + "</tbody>")
    return f'<div class="wide"><table><thead><tr>{headings}</tr></thead>\n{"".join(blocks)}</table></div>'


def _cell(cell: Cell, column: Column) -> str:
    if isinstance(cell, str):
        return f"<td{_alignment(column)}>{escape(cell)}</td>"
    text = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
    aside = f' <span class="paper">({escape(cell.paper_text)})</span>' if cell.paper_text else ""
    return f'<td{_alignment(column)} data-value="{cell.value}">{text}{aside}</td>'


def _alignment(column: Column) -> str:
    return ' class="number"' if column.numeric else ""
