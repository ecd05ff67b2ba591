"""InfluxDB's line protocol: lines become observations."""

import math
import re
from collections.abc import Iterator
from itertools import islice

from tocsin_monitor.plugins.influx import InfluxRule
from tocsin_monitor.push.intake import MOST_LABELS, Intake, MalformedError, Naming, label_name

#: Nanoseconds of each unit that times may have.
PRECISIONS = {
    "ns": 1, "n": 1, "us": 10**3, "u": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip

MOST_FIELDS = 10_000  # of one point

# A backslash takes the next character as it is. All repetitions are possessive: no line takes long, however odd.
_NAME = r"(?:[^\\, \n]|\\.)++"
_KEY = r"(?:[^\\,= \n]|\\.)++"
_VALUE = r'(?:"(?:[^"\\]|\\[\s\S])*+"|[^", \r\n]++)'
_TAG = re.compile(rf",({_KEY})=({_KEY})")
_FIELD = re.compile(rf"({_KEY})=({_VALUE})")
_LINE = re.compile(
    rf"[ \t]*+(?!#)(?P<measurement>{_NAME})(?P<tags>(?:,{_KEY}={_KEY})*+)"
    rf" +(?P<fields>{_KEY}={_VALUE}(?:,{_KEY}={_VALUE})*+)"
    r"(?: +(?P<time>-?[0-9]{1,19}))? *\r?(?:\n|\Z)"
)
_REST = re.compile(r"[^\n]*+(?:\n|\Z)")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|[+-]?[0-9]++[iu]")
_ESCAPED = re.compile(r"\\([,= ])")
_TRUTHS = {
    **dict.fromkeys(("t", "T", "true", "True", "TRUE"), 1.0),
    **dict.fromkeys(("f", "F", "false", "False", "FALSE"), 0.0),
}


def read_lines(body: bytes, unit: int, naming: Naming[InfluxRule], intake: Intake) -> None:
    """Take the points of a body; a line that is none is refused, and all others are taken.

    `unit` is how many nanoseconds the unit of times has. Points without a time get the time of arrival.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise MalformedError(f"the body must be in UTF-8: {error}") from None
    place, number = 0, 0
    while place < len(text):
        number += 1
        intake.visit(1)
        line = _LINE.match(text, place)
        if line is not None:
            place = line.end()
            _take(line, number, unit, naming, intake)
            continue
        rest = _REST.match(text, place)
        place = rest.end() if rest else len(text)
        shown = rest[0].strip() if rest else ""
        if shown and not shown.startswith("#"):
            wanted = "measurement,tag=value field=value time"
            intake.refuse(f"unable to parse line {number}: expected {wanted}, got {shown[:100]!r}")


def _take(line: re.Match[str], number: int, unit: int, naming: Naming[InfluxRule], intake: Intake) -> None:
    measurement = _plain(line["measurement"])
    found = naming.rule_for(measurement)
    if found is None:
        intake.ignore("measurements that no rule matches")
        return
    rule, template = found
    # At most one more than a series may have: then it is refused.
    found_tags = islice(_TAG.finditer(line["tags"]), MOST_LABELS + 1)
    tags = {label_name(_plain(tag[1])): _plain(tag[2]) for tag in found_tags}
    try:
        fields = dict(_fields(line["fields"]))
    except ValueError as error:
        intake.refuse(f"unable to parse line {number}: {error}")
        return
    moment = None if line["time"] is None else int(line["time"]) * unit
    add = intake.add_rate if rule.rate else intake.add
    if rule.fields:
        if fields.keys().isdisjoint(rule.fields):
            intake.ignore("points without any of the fields of their rule")
            return
        signal = intake.signal(template, {**tags, "__name__": measurement}, 1, {"measurement": measurement})
        if signal is not None:
            values = [fields.get(field, math.nan) for field in rule.fields]
            add(signal, moment, *values, features=rule.fields if len(values) > 1 else None)
        return
    for field, value in fields.items():
        name = measurement if field == "value" else f"{measurement}_{field}"
        signal = intake.signal(template, {**tags, "__name__": name}, 1, {"measurement": measurement, "field": field})
        if signal is not None:
            add(signal, moment, value)


def _fields(text: str) -> Iterator[tuple[str, float]]:
    """The fields that are numbers, or true (1) or false (0)."""
    for count, field in enumerate(_FIELD.finditer(text), 1):
        if count > MOST_FIELDS:
            raise ValueError(f"a point may have at most {MOST_FIELDS} fields, got more")
        key, value = field.groups()
        if value in _TRUTHS:
            yield _plain(key), _TRUTHS[value]
        elif _NUMBER.fullmatch(value):
            yield _plain(key), float(value.rstrip("iu"))
        elif not value.startswith('"'):
            raise ValueError(f"invalid value of field {key[:60]!r}: {value[:60]!r}")


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
