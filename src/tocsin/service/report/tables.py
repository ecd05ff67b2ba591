"""The parts that the tables of a report are made of."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from tocsin.reports import page


def table(headings: Sequence[str], rows: Sequence[tuple[Sequence[str], str]], nothing: str) -> str:
    """A table of rows, each with its cells in HTML and its attributes; or what to say if there are none."""
    if not rows:
        return f'<div class="panel"><p>{nothing}</p></div>'
    lines = (f"<tr{target}>{''.join(map(page.cell, headings, cells))}</tr>" for cells, target in rows)
    return page.table(headings, lines)


def linked(text: str, link: str) -> str:
    """A text with a link, if there is one."""
    return f'<a href="{escape(link)}">{escape(text)}</a>' if link else escape(text)


def counted(count: int, what: str) -> str:
    """So many of something."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def moment(nanoseconds: int) -> str:
    """A time to the minute."""
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime("%Y-%m-%d %H:%M")
