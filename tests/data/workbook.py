"""Excel workbooks by hand: the least that the format asks for."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OF = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills><borders count="1">'
    '<border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf numFmtId="0"/>'
    '<xf numFmtId="22"/><xf numFmtId="14"/><xf numFmtId="21"/></cellXfs></styleSheet>'
)  # a number, a date with time, a date, a time


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """A workbook with these sheets, whose rows hold texts, numbers, dates, times and None."""
    names = list(sheets)
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{kinds}.styles+xml"/>'
        + "".join(
            f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{kinds}.worksheet+xml"/>'
            for i in range(1, len(names) + 1)
        )
        + "</Types>",
        "_rels/.rels": _relations({"rId1": ("officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OF}"><sheets>'
        + "".join(f'<sheet name="{escape(n)}" sheetId="{i}" r:id="rId{i}"/>' for i, n in enumerate(names, start=1))
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            {f"rId{i}": ("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(names) + 1)}
            | {"rId0": ("styles", "styles.xml")}
        ),
        "xl/styles.xml": _STYLES,
    }
    for i, name in enumerate(names, start=1):
        rows = "".join(
            f'<row r="{r}">{"".join(_cell(cell, f"{chr(65 + c)}{r}") for c, cell in enumerate(row))}</row>'
            for r, row in enumerate(sheets[name], start=1)
        )
        parts[f"xl/worksheets/sheet{i}.xml"] = f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, text in parts.items():
            archive.writestr(path, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return content.getvalue()


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    rows = "".join(f'<Relationship Id="{i}" Type="{_OF}/{kind}" Target="{to}"/>' for i, (kind, to) in targets.items())
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def _cell(cell: Any, place: str) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
    if isinstance(cell, datetime):
        return f'<c r="{place}" s="1"><v>{(cell - datetime(1899, 12, 30)).total_seconds() / 86400!r}</v></c>'
    if isinstance(cell, date):
        return f'<c r="{place}" s="2"><v>{(cell - date(1899, 12, 30)).days}</v></c>'
    if isinstance(cell, time):
        return f'<c r="{place}" s="3"><v>{(cell.hour * 60 + cell.minute) / 1440!r}</v></c>'
    return f'<c r="{place}"><v>{cell!r}</v></c>'


def rewritten(content: bytes, changes: Mapping[str, str]) -> bytes:
    """A workbook in which each of these texts is replaced by another, wherever it is."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            text = before.read(name).decode()
            for old, new in changes.items():
                text = text.replace(old, new)
            after.writestr(name, text)
    return result.getvalue()


def far_away() -> bytes:
    """A small workbook that says that it is as large as the format allows: its two rows are at the ends of a sheet."""
    rows = [["time", "value"], ["2026-01-01", 1.0]]
    return rewritten(workbook({"lies": rows}), {'row r="2"': 'row r="1048576"', 'r="B2"': 'r="XFD1048576"'})


def bomb(rows: int) -> bytes:
    """A workbook of few bytes with very many rows, which are all the same."""
    one = '<row><c t="inlineStr"><is><t>2026-01-01</t></is></c><c><v>1</v></c></row>'
    return rewritten(workbook({"bomb": [["time", "value"]]}), {"</sheetData>": one * rows + "</sheetData>"})
