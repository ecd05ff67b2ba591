"""What is guessed of a file, and above all what is not: a measurement must never be taken for something else."""

import io

import numpy as np
import pytest

from tocsin.data import read_signals
from tocsin.data.numbers import NumberFormat, detect_number_format
from tocsin.data.sources import find_encoding
from tocsin.data.tables import find_heading, find_table, is_units


def understood(columns, **options):
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    text = ";".join(names) + "\n" + "".join(";".join(map(str, row)) + "\n" for row in rows)
    with read_signals(io.StringIO(text), **options) as signals:
        (signal,) = signals
        return signal, str(signals.summary)


@pytest.mark.parametrize(
    "values",
    [
        [0, 999] * 20,  # a switch
        [-200, *range(30)],  # once is a measurement
        [-200, -150, -100, -50, -200, 0, 50],  # among its like
        [999, 500, 20, 3, 999, 700],  # nearer to the others than they to each other
        [-1, 0, 1, -1, 5],  # not in use
        [-200] * 20,  # nothing else
    ],
)
def test_what_is_no_sentinel(values):
    signal, line = understood({"x": values})
    assert signal.values[:, 0].tolist() == values
    assert "missing" not in line


def test_a_sentinel_of_one_column_holds_for_those_beside_it():
    wide = [900.0, 2100.0, 1500.5, -200, 1300.25, -200]  # negative is not enough to tell here
    signal, line = understood({"a": [0.5, -200, 0.25, 0.75, -200, 1], "b": [x - 950 if x > 0 else x for x in wide]})
    assert np.isnan(signal.values[:, 1]).tolist() == [False, False, False, True, False, True]
    assert "4 values were -200 and count as missing" in line


def test_no_sentinel_is_found_where_none_is_wanted():
    values = [1, -999, 2, 3, -999]
    assert "2 values were -999" in understood({"x": values})[1]
    assert understood({"x": values}, missing="none")[0].values[:, 0].tolist() == values
    assert np.isnan(understood({"x": values}, missing=["none", 2])[0].values[2, 0])


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("anomaly", [0.25, 0.5, 0.75, 0.1]),  # a score
        ("label", range(40)),  # too many to be classes
        ("index", [3, 2, 5, 9]),  # a price
        ("speed", range(40)),  # a ramp
    ],
)
def test_what_is_no_label_and_no_counter(name, cells):
    cells = list(cells)
    signal, line = understood({name: cells, "x": [i * 7 % 5 for i in range(len(cells))]})
    assert signal.features == (name, "x")
    assert "not" not in line


@pytest.mark.parametrize(
    ("name", "cells"), [("is_anomaly", [0, 1, 0]), ("Index", [1, 2, 3]), ("Unnamed: 0", [0, 1, 2])]
)
def test_labels_and_counters_are_used_if_they_are_named_or_alone(name, cells):
    assert understood({name: cells, "x": [1.5, 2, 3]})[0].features == ("x",)
    assert understood({name: cells, "x": [1.5, 2, 3]}, values=[name])[0].features == (name,)
    assert understood({name: cells})[0].features == (name,)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([["1.5", "2"]], NumberFormat()),
        ([["1,5", "2"]], NumberFormat(",")),
        ([["1.234", "5.678"]], NumberFormat()),  # three digits behind a point are no thousands by themselves
        ([["0,123"]], NumberFormat(",")),
        ([["1,234", "2,345"], ["0.5", "1.5"]], NumberFormat(".", ",")),
        ([["1.234.567"]], NumberFormat(",", ".")),
        ([["1'234.5"]], NumberFormat(".", "'")),
        ([["10.03.2004", "18.00.00", "192.168.1.1"], ["2,5"]], NumberFormat(",")),  # no numbers
        ([["1,5", "text"], ["2.5", "2,5", "3.5"]], NumberFormat()),  # in doubt, a point
    ],
)
def test_how_numbers_are_written(columns, expected):
    assert detect_number_format(columns) == expected


@pytest.mark.parametrize("text", ["n/a", "--", "1.2.3", "1,2,3", "", "12 34"])
def test_what_is_no_number_stays_none(text):
    for number_format in (NumberFormat(",", ". "), NumberFormat(".", ", '")):
        with pytest.raises(ValueError, match="could not convert"):
            float(number_format.as_python(text))


def test_encodings_without_a_mark():
    text = "Zeit;Größe\n1;2\n" * 20
    for encoding, found in {"utf-8": "utf-8", "latin-1": "cp1252", "utf-16-le": "utf-16-le"}.items():
        assert find_encoding(text.encode(encoding)) == found
    assert find_encoding("Größe".encode()[:3]) == "utf-8"  # cut within a character
    assert find_encoding("Größe".encode() + b"\xff") == "utf-8"  # damaged
    assert find_encoding(b"PK\x03\x04\x00\x00\x00\x01") is None


def test_where_tables_begin():
    assert find_table(["a;b", "1,5;2,5", "1,5;2,5"]) == (";", 0)
    assert find_table(["made by, a machine", "a,b,c", "1,2,3", "4,5,6"]) == (",", 1)
    assert find_table(["a,b,c", "1,2", "3,4", "5,6"]) == (",", 0)  # wrong rows, not a preamble
    assert find_heading([["id", "x"], ["a", ""], ["a", "1"]], None, None).rows == 1  # a value is missing
    assert find_heading([["time", "x"], ["s", "bar"], ["1", "2"]], None, None).rows == 2
    assert is_units(["", "°C", "%", "m/s", "kWh", "[bar]", "µg/m3"])
    assert not is_units(["pump", "open"])
