"""Lines of a stream, good and bad."""

import numpy as np
import pytest

from tests.data.tables import write
from tocsin.data import AGGREGATES, DataError, LineError, LineParser, ParsedObservation, Resampler, read_signals


def parse(lines, *arguments, **options):
    parser = LineParser(*arguments, **options)
    return [observation for line in lines if (observation := parser.parse(line)) is not None]


def same(left, right):
    return (left.id, left.time) == (right.id, right.time) and np.array_equal(left.values, right.values, equal_nan=True)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["1.5\n", "2\r\n"], [(None, None, (1.5,)), (None, None, (2.0,))]),
        (["1.5, 2", "3 4", "5\t6", "7;NA", "8,"], [(None, None, pair) for pair in
            [(1.5, 2.0), (3.0, 4.0), (5.0, 6.0), (7.0, np.nan), (8.0, np.nan)]]),
        (["nan", "1"], [(None, None, (np.nan,)), (None, None, (1.0,))]),
        (["# a pump", "", "time,id,a,b,note", "1,x,2,3,ok", "2,y,,5,ok"],
            [("x", 1.0, (2.0, 3.0)), ("y", 2.0, (np.nan, 5.0))]),
        (["2024-01-01T00:00:00Z,1.5", "2024-01-01T00:01:00Z,2"],
            [(None, np.datetime64("2024-01-01"), (1.5,)), (None, np.datetime64("2024-01-01T00:01"), (2.0,))]),
        (["1700000000 5"], [(None, None, (1700000000.0, 5.0))]),
        (["\ufefftime;v", "1700000000;5"], [(None, np.datetime64("2023-11-14T22:13:20"), (5.0,))]),
        (['{"id": 7, "time": 1700000000, "value": 1.2}', '{"id": "b", "time": 1700000060, "value": null}'],
            [("7", np.datetime64("2023-11-14T22:13:20"), (1.2,)),
             ("b", np.datetime64("2023-11-14T22:14:20"), (np.nan,))]),
        (['{"a": null, "b": 2, "text": "x"}', '{"b": 3, "a": 1, "text": "y", "more": "z"}'],
            [(None, None, (np.nan, 2.0)), (None, None, (1.0, 3.0))]),
    ],
)  # fmt: skip
def test_formats_are_told_by_the_first_line(lines, expected):
    found = parse(lines)
    assert len(found) == len(expected)
    assert all(same(left, ParsedObservation(*right)) for left, right in zip(found, expected, strict=True))


def test_given_columns():
    lines = ["when,name,a,b", "5,x,1,2"]
    assert parse(lines, time="when", values=["b", "a"], id="name") == [ParsedObservation("x", 5.0, (2.0, 1.0))]
    assert parse(lines, "csv", values="b") == [ParsedObservation(None, None, (2.0,))]
    assert parse(['{"t": 5, "id": 3, "v": 1}'], values=["id"]) == [ParsedObservation(None, None, (3.0,))]
    assert parse(["1,2,3"], "plain", time="1") == [ParsedObservation(None, 1.0, (2.0, 3.0))]
    assert parse(["03/04/24,1"], "csv", time="1", time_format="%d/%m/%y")[0].time == np.datetime64("2024-04-03")


def test_features_and_lines_are_known():
    parser = LineParser()
    assert parser.features is None
    parser.parse("a,b")
    assert parser.features is None
    parser.parse("1,2")
    assert parser.features == ("a", "b")
    assert parser.line == 2
    single = LineParser()
    single.parse("5")
    assert single.features == ("value",)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (["1,2"], "1", r"line 2: 1 fields, but the first line had 2: '1'"),
        (["1"], "abc", r"line 2: column value: 'abc' is not a finite number; accepted: a number, or null"),
        (["1"], "inf", r"line 2: column value: 'inf' is not a finite number"),
        (["time,a", "1,2"], "x,3", r"line 3: column time: 'x' is not a time; accepted: ISO 8601, a date or a number"),
        (["time,a", "2024-01-01,2"], ",3", r"line 3: column time: '' is not a time"),
        (["id,a", "x,2"], ",3", r"line 3: column id: expected an id, got ''"),
        (["id,a", "x,2"], "x,3,4", r"line 3: 3 fields, but the first line had 2"),
        (["a,b", "1,2"], f'1,"{"x" * 200_000}"', r"line 3: field larger than field limit"),
        (['{"a": 1}'], "{", r"line 2: Expecting property name"),
        (['{"a": 1}'], "[1]", r"line 2: expected a JSON object, got '\[1\]'"),
        (['{"a": 1, "b": 2}'], '{"a": 1}', r"line 2: no b; every line must have a, b"),
        (['{"a": 1}'], '{"a": 1, "b": 2}', r"line 2: b besides a, the only fields on the first line"),
        (['{"a": 1}'], '{"a": "x"}', r"line 2: column a: 'x' is not a finite number"),
        (['{"a": 1}'], '{"a": true}', r"line 2: column a: True is not a finite number"),
        (['{"time": 1, "a": 1}'], '{"a": 1}', r"line 2: column time: None is not a time"),
        (['{"id": "x", "a": 1}'], '{"a": 1}', r"line 2: column id: expected an id, got None"),
    ],
)
def test_a_bad_line_is_named_and_the_next_is_read(good, bad, message):
    parser = LineParser()
    for line in good:
        parser.parse(line)
    features = parser.features
    with pytest.raises(LineError, match=message) as caught:
        parser.parse(bad)
    assert isinstance(caught.value, DataError)
    assert parser.features == features
    again = parser.parse(good[-1])
    assert again is not None
    assert parser.line == len(good) + 2


@pytest.mark.parametrize(
    ("first", "options", "message"),
    [
        (["a,b", "x,y"], {}, r"line 2: expected at least one number"),
        (['{"a": "x"}'], {}, r"line 1: expected at least one number"),
        (["a,b", "1,2"], {"values": "c"}, r"line 2: the line has no column 'c' \(given as `values`\)"),
        (["a,b", "1,2"], {"time": "bb"}, r"did you mean 'b'"),
        (["time,b", "01/02/2024,2"], {}, r"line 2: times such as '01/02/2024' are ambiguous.* set `day_first`"),
        (["time,b", "foo,2"], {}, r"line 2: column time: 'foo' is not a time"),
        (["5"], {"format": "jsonl"}, r"line 1: expected a JSON object, got '5'"),
    ],
)  # fmt: skip
def test_a_first_line_that_settles_nothing(first, options, message):
    parser = LineParser(**options)
    for line in first[:-1]:
        assert parser.parse(line) is None
    with pytest.raises(LineError, match=message):
        parser.parse(first[-1])
    assert parser.features is None


def test_wrong_format():
    with pytest.raises(ValueError, match="format must be one of 'auto', 'csv', 'jsonl', 'plain', got 'xml'"):
        LineParser("xml")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_stream_reads_what_a_file_does(tmp_path, suffix):
    times = [f"2024-01-01T00:{minute:02d}:00+01:00" for minute in range(30)]
    table = {"time": times, "a": [i / 7 for i in range(30)], "b": [None if i % 4 == 1 else i for i in range(30)]}
    path = write(tmp_path / f"x.{suffix}", table)
    (signal,) = read_signals(path)
    observations = parse(path.read_text().splitlines())
    assert np.array_equal([observation.time for observation in observations], signal.times)
    assert np.array_equal([observation.values for observation in observations], signal.values, equal_nan=True)


EUROPEAN = ["Date;Time;CO;T;anomaly", ";;mg/m3;°C;-", "10/03/2004;18.00.00;2,6;1.360;0", "13/03/2004;19.00.00;2;7;1"]


def test_lines_as_people_have_them():
    parser = LineParser(day_first=True)
    found = [observation for line in EUROPEAN if (observation := parser.parse(line)) is not None]
    times = [np.datetime64("2004-03-10T18:00"), np.datetime64("2004-03-13T19:00")]
    assert found == [ParsedObservation(None, times[0], (2.6, 1360.0)), ParsedObservation(None, times[1], (2.0, 7.0))]
    assert str(parser.summary) == (
        "time: Date + Time, day first; decimal comma; a point between thousands; 2 features; not anomaly"
    )


def test_a_decimal_comma_that_comes_late():
    assert [one.values for one in parse(["a;b", "1;2", "3;4,25"])] == [(1.0, 2.0), (3.0, 4.25)]
    with pytest.raises(LineError, match=r"line 3: column b: '4,25' is not a finite number"):
        parse(["a;b", "1;2.5", "3;4,25"])
    with pytest.raises(LineError, match=r"line 2: numbers such as '1,234' are ambiguous.* set `decimal`"):
        parse(["a;b", "1;1,234"])
    assert parse(["a;b", "1;1,234"], decimal=",")[0].values == (1.0, 1.234)
    assert parse(["1,5 2,5"], "plain", decimal=",")[0].values == (1.5, 2.5)


def test_what_is_skipped_ignored_and_missing():
    lines = ["made by a machine", "a,b,c", "1,-200,3", "2,ERR,3"]
    found = parse(lines, skip=1, ignore="c", missing=["-200", "err"])
    assert np.array_equal([one.values for one in found], [(1, np.nan), (2, np.nan)], equal_nan=True)


def test_a_label_alone_is_a_value():
    assert parse(["time,anomaly", "1,0"])[0].values == (0.0,)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_stream_is_put_together_as_a_file_is(tmp_path, aggregate):
    rng = np.random.default_rng(3)
    times = np.datetime64("2024-01-01T00:00:00") + np.sort(rng.choice(3000, 400, replace=False))
    values = rng.normal(size=(400, 2)).round(3)
    values[rng.random((400, 2)) < 0.3] = np.nan
    path = tmp_path / "x.csv"
    path.write_text("time,a,b\n" + "".join(f"{t},{a},{b}\n" for t, (a, b) in zip(times, values, strict=True)))
    (signal,) = read_signals(path, every="10s", aggregate=aggregate)
    resampler = Resampler("10s", aggregate)
    found = [one for line in parse(path.read_text().splitlines()) if (one := resampler.push(line)) is not None]
    found.extend(resampler.flush())
    there = signal.lines > 0
    assert np.array_equal([one.time for one in found], signal.times[there])
    assert np.array_equal([one.values for one in found], signal.values[there], equal_nan=True)
    obvious = values[(times >= found[0].time) & (times < found[0].time + np.timedelta64(10, "s")), 0]
    obvious = obvious[np.isfinite(obvious)]
    by = {"mean": np.mean, "last": lambda some: some[-1], "max": np.max, "sum": np.sum, "count": len}[aggregate]
    expected = by(obvious) if obvious.size or aggregate == "count" else np.nan
    np.testing.assert_allclose(found[0].values[0], expected)


def test_what_cannot_be_put_together():
    resampler = Resampler("10s")
    with pytest.raises(ValueError, match="`every` needs times"):
        resampler.push(ParsedObservation(None, None, (1.0,)))
    with pytest.raises(ValueError, match="every must be a number, because the times are numbers"):
        resampler.push(ParsedObservation(None, 5.0, (1.0,)))
    numbers = Resampler(10)
    assert numbers.push(ParsedObservation("a", 5.0, (1.0,))) is None
    assert numbers.push(ParsedObservation("b", 25.0, (1.0,))) is None
    assert numbers.push(ParsedObservation("a", 19.0, (2.0,))) == ParsedObservation("a", 0.0, (1.0,))
    with pytest.raises(ValueError, match=r"time must be later than 10\.0"):
        numbers.push(ParsedObservation("a", 5.0, (1.0,)))
