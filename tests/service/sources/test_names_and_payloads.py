"""How signals are called, and what messages say."""

import math

import pytest

from tocsin_monitor.config.section import NameTemplate
from tocsin_monitor.observations import LONGEST_NAME, check_name
from tocsin_monitor.sources.payloads import Path, Payload, Read, fitting, series_signal, topic_signal


def test_names_of_topics() -> None:
    assert topic_signal(NameTemplate("{topic}"), "a/b") == "a/b"
    assert topic_signal(NameTemplate("{1}.{0}{{}}"), "a/b") == "b.a{}"
    with pytest.raises(ValueError, match="has 2 levels"):
        topic_signal(NameTemplate("{2}"), "a/b")


@pytest.mark.parametrize("text", ["{", "{a.b}", "{a!r}", "{a:10}", "{a[0]}", "{}"])
def test_wrong_templates(text: str) -> None:
    with pytest.raises(ValueError, match="template"):
        NameTemplate(text)


def test_names_of_series() -> None:
    labels = {"__name__": "up", "job": 'say "hi"\n', "a": "ö"}
    assert series_signal(None, labels, "up") == 'up{a="ö", job="say \\"hi\\"\\n"}'
    assert series_signal(None, {"__name__": "up"}, "up") == "up"
    assert series_signal(None, {"a": "1"}, "rate(x [5m])\n") == 'rate(x [5m]){a="1"}'
    assert series_signal(NameTemplate("{job}/{none}"), labels, "up").startswith('say "hi"')


def test_names_fit() -> None:
    one, other = (fitting("x" * LONGEST_NAME + end) for end in "ab")
    assert one != other
    assert check_name(one) == one
    assert check_name(fitting("  a\tb\u200b ")) == "a\\tb\\u200b"
    with pytest.raises(ValueError, match="empty"):
        fitting(" ")


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a[", "a[x]", "a[0]b", "a]"])
def test_wrong_paths(text: str) -> None:
    with pytest.raises(ValueError, match="a path must be"):
        Path(text)


@pytest.mark.parametrize(
    ("path", "found"), [("a", {"b c": [1, [2]]}), ("a.b c[0]", 1), ("a.b c[1][0]", 2), ("[0]", None), ("a.b c.x", None)]
)
def test_paths(path: str, found: object) -> None:
    result = Path(path).find({"a": {"b c": [1, [2]]}})
    assert result == found if found is not None else not isinstance(result, (dict, list, int))
    assert Path("[1].a").find([0, {"a": 5}]) == 5


def test_payloads() -> None:
    assert Payload((), None).read(b"1e3") == [Read((1000.0,), None)]
    assert Payload(("v",), "t").read(b'{"v": 1, "t": 1700000000123}') == [Read((1.0,), 1_700_000_000_123_000_000)]
    (found,) = Payload(("v",), None).read(b'{"v": null}')
    assert math.isnan(found.values[0])


@pytest.mark.parametrize(
    ("payload", "data", "told"),
    [
        (Payload((), None), b"", "empty"),
        (Payload((), None), b'{"v": 1}', "a finite number"),
        (Payload((), None), b"inf", "a finite number"),
        (Payload(("v",), None), b"[" * 100_000, "nested too deeply|no JSON"),
        (Payload(("v",), None), b"1" * 2**21, "bytes"),
        (Payload(("v",), "t"), b'{"v": 1, "t": "soon"}', "a time must be"),
        (Payload(("v",), "t"), b'{"v": 1, "t": 12}', "a time must be"),
    ],
)
def test_wrong_payloads(payload: Payload, data: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        payload.read(data)


def test_a_plain_number_has_no_time() -> None:
    with pytest.raises(ValueError, match="a plain number has no time"):
        Payload((), "t")
