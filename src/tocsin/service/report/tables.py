"""The parts that the tables of a report are made of."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape


def table(headings: Iterable[str], rows: Sequence[str], nothing: str) -> str:
    """A table, or what to say if it has no rows."""
    if not rows:
        return f'<div class="panel"><p>{nothing}</p></div>'
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def row(cells: Iterable[tuple[str, str]], target: str = "") -> str:
    """A row of cells, each given as (class, HTML)."""
    inside = "".join(f'<td class="{kind}">{text}</td>' for kind, text in cells)
    return f"<tr{target}>{inside}</tr>"


def linked(text: str, link: str) -> str:
    """A text with a link, if there is one."""
    return f'<a href="{escape(link)}">{escape(text)}</a>' if link else escape(text)


def counted(count: int, what: str) -> str:
    """So many of something."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def moment(nanoseconds: int) -> str:
    """A time to the minute."""
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime("%Y-%m-%d %H:%M")
