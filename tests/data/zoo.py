"""Files as people have them: one history, written in every way that is in use. Run it to see what is made of each.

python -m tests.data.zoo
"""

import gzip
import io
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from tests.data.workbook import workbook
from tocsin.data import DataError, read_signals

ROWS = 120
TIMES = [datetime(2024, 3, 10, 18) + timedelta(hours=i) for i in range(ROWS)]  # a day beyond the twelfth is among them
TEMPERATURE = [round(18 + 6 * float(np.sin(i / 4)), 2) for i in range(ROWS)]
LOAD = [round(900 + 13.5 * i, 1) for i in range(ROWS)]
HOLES = (7, 30, 31, 77)  # where the logger had nothing to tell

Row = Callable[[int], str]


@dataclass(frozen=True)
class Specimen:
    """A kind of file: its bytes (of a folder, those of each file), the options it needs, and what must be made of it.

    `understood` are the parts of the line, `refused` those of the error where there must be one. `rows` and `columns`
    pick what must come out of the history; `holes` are missing in the first column.
    """

    content: bytes | Mapping[str, bytes]
    understood: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    columns: int = 2
    step: int = 1
    holes: tuple[int, ...] = ()
    dated: bool = True
    suffix: str = "csv"


def table(
    header: str, row: Row, *, before: str = "", after: str = "", encoding: str = "utf-8", rows: int = ROWS
) -> bytes:
    lines = [header, *map(row, range(rows))] if header else list(map(row, range(rows)))
    return (before + "\n".join(lines) + "\n" + after).encode(encoding)


def comma(number: float, thousands: str = "") -> str:
    return f"{number:,}".replace(",", "T").replace(".", ",").replace("T", thousands)


def iso(i: int) -> str:
    return TIMES[i].isoformat(sep=" ")


def plain(i: int) -> str:
    return f"{iso(i)},{TEMPERATURE[i]},{LOAD[i]}"


def holed(sentinel: str) -> Row:
    return lambda i: f"{iso(i)},{sentinel if i in HOLES else TEMPERATURE[i]},{LOAD[i]}"


def european(i: int) -> str:
    return f"{TIMES[i]:%d/%m/%Y;%H.%M.%S};{comma(TEMPERATURE[i])};{comma(LOAD[i])}"


def parquet(first: int = 0, last: int = ROWS) -> bytes:
    content = io.BytesIO()
    columns = {"time": TIMES[first:last], "temperature": TEMPERATURE[first:last], "load": LOAD[first:last]}
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


def rows(start: Callable[[datetime], list[Any]]) -> list[list[Any]]:
    return [[*start(TIMES[i]), TEMPERATURE[i], LOAD[i]] for i in range(ROWS)]


SHEET = [["time", "temperature", "load"], *rows(lambda time: [time])]
HEADER = "time,temperature,load"
SECONDS = "".join(f"{TIMES[i] + timedelta(minutes=m)},{TEMPERATURE[i] + d},{LOAD[i]}\n" for i in range(ROWS) for m, d in
                  ((0, -1.0), (17, 0.5), (41, 0.5)))  # fmt: skip

ZOO: dict[str, Specimen] = {
    "plain": Specimen(table(HEADER, plain), ("time: time; 2 features; every 1 h",)),
    "date and time in two columns": Specimen(
        table("Date,Time,temperature,load", lambda i: plain(i).replace(" ", ",")),
        ("time: Date + Time; 2 features; every 1 h",),
    ),
    "time before date": Specimen(
        table("Time;Date;temperature;load", lambda i: f"{TIMES[i]:%H:%M;%d.%m.%Y};{TEMPERATURE[i]};{LOAD[i]}"),
        ("time: Date + Time, day first;",),
    ),
    "date and hour": Specimen(
        table(
            "date,hour,temperature,load", lambda i: f"{TIMES[i]:%Y-%m-%d},{TIMES[i].hour},{TEMPERATURE[i]},{LOAD[i]}"
        ),
        ("time: date + hour;",),
    ),
    "European: two columns, decimal comma, empty columns and rows": Specimen(
        table("Date;Time;temperature;load;;", lambda i: european(i) + ";;", after=";;;;;\n" * 9),
        ("time: Date + Time, day first; decimal comma; 2 features; every 1 h",),
    ),
    "decimal comma in quotes": Specimen(
        table(HEADER, lambda i: f'{iso(i)},"{comma(TEMPERATURE[i])}","{comma(LOAD[i])}"'), ("decimal comma",)
    ),
    "decimal comma and tabs": Specimen(
        table("time\ttemperature\tload", lambda i: f"{iso(i)}\t{comma(TEMPERATURE[i])}\t{comma(LOAD[i])}"),
        ("decimal comma",),
    ),
    "points between thousands": Specimen(
        table("time;temperature;load", lambda i: f"{iso(i)};{comma(TEMPERATURE[i])};{comma(LOAD[i], '.')}"),
        ("decimal comma; a point between thousands",),
    ),
    "spaces between thousands": Specimen(
        table("time;temperature;load", lambda i: f"{iso(i)};{comma(TEMPERATURE[i])};{comma(LOAD[i], chr(0xA0))}"),
        ("decimal comma; a space between thousands",),
    ),
    "commas between thousands": Specimen(
        table(HEADER, lambda i: f'{iso(i)},{TEMPERATURE[i]},"{LOAD[i]:,}"'), ("a comma between thousands",)
    ),
    "a comma that may be either": Specimen(
        table("time;count", lambda i: f"{iso(i)};{1000 + i:,}"), refused=("'1,000' are ambiguous", "set `decimal`")
    ),
    "the same, with the option": Specimen(
        table("time;temperature;load", lambda i: f"{iso(i)};{TEMPERATURE[i]};{LOAD[i]:,}"),
        ("a comma between thousands",),
        {"decimal": "."},
    ),
    "a preamble": Specimen(
        table(
            HEADER, plain, before="Station: Harbour\nLogger 17, serial 4711-A, made by a machine\n\nExported today\n"
        ),
        ("3 lines before the header",),
    ),
    "a preamble of pairs": Specimen(
        table("time;load", lambda i: f"{iso(i)};{LOAD[i]}", before="Station;Harbour\nSerial;A\n"),
        ("2 lines before the header",),
        columns=-1,
    ),
    "a preamble to skip": Specimen(
        table("when,what,much", plain, before="a,b,c\nd,e,f\n"), ("time: when; 2 features",), {"skip": 2}
    ),
    "units under the header": Specimen(
        table("time;temperature;load\n;°C;kW", lambda i: plain(i).replace(",", ";")), ("units in line 2; 2 features",)
    ),
    "delimiters at the end of each row": Specimen(table(HEADER, lambda i: plain(i) + ",,"), ("2 features",)),
    "UTF-16": Specimen(table("Zeit;Wärme;Last", lambda i: plain(i).replace(",", ";"), encoding="utf-16"), ("UTF-16",)),
    "UTF-16 without a mark": Specimen(table(HEADER, plain, encoding="utf-16-le"), ("UTF-16",)),
    "UTF-8 with a mark": Specimen(table(HEADER, plain, encoding="utf-8-sig"), ("time: time; 2 features",)),
    "Latin-1": Specimen(table("Zeit,Wärme,Last", plain, encoding="latin-1"), ("time: Zeit; Latin-1; 2 features",)),
    "another encoding, with the option": Specimen(
        table(HEADER, plain, encoding="utf-32-le"), options={"encoding": "utf-32-le"}, understood=("2 features",)
    ),
    "another encoding": Specimen(table(HEADER, plain, encoding="utf-32-le"), refused=("is not text", "`encoding`")),
    "day first, with points": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%d.%m.%Y %H:%M},{TEMPERATURE[i]},{LOAD[i]}", rows=40),
        ("time: time, day first",),
    ),
    "month first": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%m/%d/%Y %I:%M %p},{TEMPERATURE[i]},{LOAD[i]}"),
        ("time: time, month first",),
    ),
    "day or month first": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%d/%m/%Y %H:%M},{TEMPERATURE[i]},{LOAD[i]}", rows=40),
        refused=("the day or the month may come first", "set `day_first`"),
    ),
    "the same with the option": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%d/%m/%Y %H:%M},{TEMPERATURE[i]},{LOAD[i]}", rows=40),
        ("time: time, day first",),
        {"day_first": True},
    ),
    "two digits for the year": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%d.%m.%y %H:%M},{TEMPERATURE[i]},{LOAD[i]}"), refused=("`time_format`",)
    ),
    "-200 for nothing": Specimen(
        table(HEADER, holed("-200")), ("4 values were -200 and count as missing",), holes=HOLES
    ),
    "-999 for nothing": Specimen(
        table(HEADER, holed("-999.0")), ("4 values were -999 and count as missing",), holes=HOLES
    ),
    "9999 for nothing": Specimen(
        table(HEADER, holed("9999")), ("4 values were 9999 and count as missing",), holes=HOLES
    ),
    "n/a for nothing": Specimen(table(HEADER, holed("n/a")), ("2 features",), holes=HOLES),
    "0 for nothing, with the option": Specimen(
        table(HEADER, holed("0")), ("4 values were 0 and count as missing",), {"missing": ["0"]}, holes=HOLES
    ),
    "a word for nothing, with the option": Specimen(
        table(HEADER, holed("ERR")), ("2 features",), {"missing": ["err"]}, holes=HOLES
    ),
    "labels": Specimen(
        table(f"{HEADER},anomaly,changepoint", lambda i: f"{plain(i)},{int(i > 100)}.0,0.0"),
        ("2 features; not anomaly, changepoint",),
    ),
    "an index without a name": Specimen(table(f",{HEADER}", lambda i: f"{i},{plain(i)}"), ("2 features; not 1",)),
    "a column to ignore": Specimen(
        table(f"{HEADER},setpoint", lambda i: f"{plain(i)},20"), ("2 features",), {"ignore": ["setpoint"]}
    ),
    "irregular times, put together": Specimen(f"{HEADER}\n{SECONDS}".encode(), ("every 1 h (mean)",), {"every": "1h"}),
    "no time": Specimen(
        table("temperature,load", lambda i: plain(i).split(",", 1)[1]), ("no time: rows in file order",), dated=False
    ),
    "most times the same": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%Y-%m-%d},{TEMPERATURE[i]},{LOAD[i]}"),
        refused=("of 120 rows", "duplicate time", "`most_lost`"),
    ),
    "an interval that cannot be": Specimen(
        table(HEADER, plain), options={"interval": "1s"}, refused=("the times are 1 h apart", "`interval`")
    ),
    "JSON lines": Specimen(
        "".join(
            json.dumps({"ts": iso(i), "temperature": TEMPERATURE[i], "load": LOAD[i]}) + "\n" for i in range(ROWS)
        ).encode(),
        ("time: ts; 2 features",),
        suffix="jsonl",
    ),
    "Parquet": Specimen(parquet(), ("time: time; 2 features; every 1 h",), suffix="parquet"),
    "a folder of Parquet files": Specimen(
        {"day=1/a.parquet": parquet(0, 50), "day=2/b.parquet": parquet(50), "_SUCCESS": b""},
        ("time: time; 2 Parquet files", "every 1 h"),
        {"ignore": ["day"]},
        suffix="d",
    ),
    "a folder without any": Specimen({"notes/readme.md": b"none"}, refused=("Parquet",), suffix="none"),
    "Excel": Specimen(workbook({"Sheet1": SHEET}), ("time: time; 2 features; every 1 h",), suffix="xlsx"),
    "Excel: date and time in two columns, a title, units, an empty sheet": Specimen(
        workbook(
            {
                "Notes": [],
                "Data": [
                    ["Harbour station"],
                    [],
                    ["Date", "Time", "temperature", "load"],
                    ["", "", "°C", "kW"],
                    *rows(lambda time: [time.date(), time.time()]),
                ],
            }
        ),
        ("time: Date + Time; sheet 'Data' of 2; 1 row before the header; units in row 4; 2 features; every 1 h",),
        suffix="xlsx",
    ),
    "Excel: texts and holes, the sheet named": Specimen(
        workbook(
            {
                "Other": [["a", "b"], [1, 2]],
                "Text": [
                    ["time", "temperature", "load"],
                    *([iso(i), None if i in HOLES else TEMPERATURE[i], LOAD[i]] for i in range(ROWS)),
                ],
            }
        ),
        ("sheet 'Text' of 2",),
        {"sheet": "Text"},
        holes=HOLES,
        suffix="xlsx",
    ),
    "Excel: another sheet than there is": Specimen(
        workbook({"Sheet1": SHEET, "More": SHEET}),
        options={"sheet": "Sheet2"},
        refused=("no sheet 'Sheet2' (given as `sheet`)", "'Sheet1', 'More'"),
        suffix="xlsx",
    ),
    "a preamble that fills some columns": Specimen(
        table(
            "Messzeit;Temperatur;Last;;;",
            lambda i: f"{iso(i)};{comma(TEMPERATURE[i])};{comma(LOAD[i])};;;",
            before="Anlage;Werk 3;;;;\n",
        ),
        ("time: Messzeit; 1 line before the header; decimal comma; 2 features",),
    ),
    "months by their names": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%d-%b-%y %H:%M:%S},{TEMPERATURE[i]},{LOAD[i]}"),
        ("time: time; 2 features; every 1 h",),
    ),
    "whole names of months": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%d %B %Y %H:%M:%S},{TEMPERATURE[i]},{LOAD[i]}"),
        ("time: time; 2 features; every 1 h",),
    ),
    "units in brackets": Specimen(
        table("time,temperature [°C],load [/min]", plain), ("time: time; 2 features; every 1 h",)
    ),
    "two lines of a preamble": Specimen(
        table(
            "Messzeit;Temperatur;Last",
            lambda i: f"{iso(i)};{TEMPERATURE[i]};{LOAD[i]}",
            before="Anlage;Werk 3;\nLinie;;\n",
        ),
        ("time: Messzeit; 2 lines before the header; 2 features",),
    ),
    "German months": Specimen(
        table(HEADER, lambda i: f"{TIMES[i]:%d. Mrz %Y %H:%M},{TEMPERATURE[i]},{LOAD[i]}"),
        ("time: time; 2 features; every 1 h",),
    ),
    "gzip": Specimen(gzip.compress(table(HEADER, plain)), ("time: time; 2 features",), suffix="csv.gz"),
}


def examine(specimen: Specimen, folder: Path) -> tuple[str, bool]:
    """What is understood of a specimen (or why it is refused), and whether that is right."""
    path = folder / f"specimen.{specimen.suffix}"
    if isinstance(specimen.content, bytes):
        path.write_bytes(specimen.content)
    else:
        for name, content in specimen.content.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    try:
        with read_signals(path, most_lost=0.05, **specimen.options) as signals:
            (signal,) = signals
            line = str(signals.summary)
    except DataError as error:
        message = str(error).removeprefix(f"{path}").lstrip(": ")
        return f"refused: {message}", bool(specimen.refused) and all(part in message for part in specimen.refused)
    truth = np.column_stack([TEMPERATURE, LOAD])[: len(signal)]
    truth[list(specimen.holes), 0] = np.nan
    if specimen.columns == -1:
        truth = truth[:, 1:]
    right = (
        not specimen.refused
        and all(part in line for part in specimen.understood)
        and signal.values.shape == truth.shape
        and len(signal) >= 40
        and np.allclose(signal.values, truth, equal_nan=True)
        and (signal.times is not None) == specimen.dated
        and (
            signal.times is None or bool(np.all(signal.times == np.array(TIMES[: len(signal)], dtype="datetime64[ns]")))
        )
    )
    return line, bool(right)


def main() -> int:
    right = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, specimen in ZOO.items():
            line, good = examine(specimen, Path(folder))
            right += good
            print(f"{'right' if good else 'WRONG'}  {name}: {line}")
    print(f"files={len(ZOO)} right={right}")
    return 0 if right == len(ZOO) else 1


if __name__ == "__main__":
    raise SystemExit(main())
