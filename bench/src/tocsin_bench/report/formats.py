"""A table as Markdown, as CSV, as LaTeX and for a terminal."""

import csv
import io
import math
import re

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tocsin_bench.report.sheet import Cell, Sheet

_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "µ": r"$\mu$",
    "–": "--",  # noqa: RUF001  the dash that tables have where there is no number
}
# Columns with long text, which must wrap.
_LONG = ("reason",)


def markdown(sheet: Sheet) -> str:
    """A title, the table and its note."""

    def text(cell: Cell) -> str:
        if isinstance(cell, str):
            return _markdown_text(cell)
        shown = f"**{cell.text}**" if cell.best else cell.text
        return f"{shown} ({cell.paper_text})" if cell.paper_text else shown

    lines = [f"### {_markdown_text(sheet.title)}", ""]
    lines.append(_markdown_row([_markdown_text(column.heading) for column in sheet.columns]))
    lines.append(_markdown_row(["---:" if column.numeric else "---" for column in sheet.columns]))
    lines += [_markdown_row([text(cell) for cell in row]) for row in sheet.rows]
    if sheet.note:
        lines += ["", _markdown_text(sheet.note)]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", one_line(text))


def comma_separated(sheet: Sheet) -> str:
    """All digits of the numbers; standard deviations and the paper's numbers have columns of their own."""
    header: list[str] = []
    columns: list[list[str]] = []
    for place, column in enumerate(sheet.columns):
        cells = [row[place] for row in sheet.rows]
        header.append(column.heading)
        columns.append([cell if isinstance(cell, str) else _digits(cell.value) for cell in cells])
        for part in ("sd", "paper"):
            values = [math.nan if isinstance(cell, str) else getattr(cell, part) for cell in cells]
            if not all(math.isnan(value) for value in values):
                header.append(f"{column.heading} {part}")
                columns.append([_digits(value) for value in values])
    return csv_text([header, *(list(row) for row in zip(*columns, strict=True))])


def csv_text(rows: list[list[str]]) -> str:
    """Rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def latex(sheet: Sheet) -> str:
    """A table environment, for documents that load booktabs."""

    def text(cell: Cell) -> str:
        if isinstance(cell, str):
            return _latex_text(cell)
        shown = _latex_text(cell.text)
        shown = rf"\textbf{{{shown}}}" if cell.best else shown
        return f"{shown} ({cell.paper_text})" if cell.paper_text else shown

    def line(cells: list[str]) -> str:
        return f"{' & '.join(cells)} \\\\"

    layout = "".join(
        "r" if column.numeric else r"p{.4\linewidth}" if column.heading in _LONG else "l" for column in sheet.columns
    )
    blocks = ["\n".join(line([text(cell) for cell in row]) for row in block) for block in sheet.blocks]
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            r"\scriptsize",
            rf"\caption{{\textbf{{{_latex_text(sheet.title)}.}} {_latex_text(sheet.note)}}}",
            rf"\label{{tab:{re.sub('[^a-zA-Z0-9-]+', '-', sheet.name)}}}",
            rf"\begin{{tabular}}{{{layout}}}",
            r"\toprule",
            line([_latex_text(column.heading) for column in sheet.columns]),
            r"\midrule",
            "\n\\midrule\n".join(blocks),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def for_terminal(sheet: Sheet) -> Table:
    """Only the means; blocks have a heading row, so that the table fits 80 columns."""
    table = Table(title=escape(sheet.title), box=SIMPLE_HEAD, padding=0, pad_edge=False)
    blocks = len(sheet.blocks) > 1
    shown = [place for place, column in enumerate(sheet.columns) if column.terminal and (place or not blocks)]
    for place in shown:
        column = sheet.columns[place]
        heading = f"{sheet.columns[0].heading}\n  {column.heading}" if blocks and place == 1 else column.heading
        # Text wraps if there is no room for it; numbers never do.
        table.add_column(
            column.short or heading,
            justify="right" if column.numeric else "left",
            no_wrap=column.numeric,
            overflow="fold",
        )
    for block in sheet.blocks:
        if blocks:
            table.add_section()
            table.add_row(_terminal_text(block[0][0]) or "(none)", style="bold")
        for row in block:
            indent = "  " if blocks else ""
            table.add_row(*(indent * (place == 1) + _terminal_text(row[place]) for place in shown))
    return table


def _terminal_text(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape(one_line(cell))
    return f"[bold]{cell.mean_text}[/bold]" if cell.best else cell.mean_text
