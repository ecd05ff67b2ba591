"""Errors carry the names of arguments as data: Python and the command word the same message in their own way."""

import pickle

import pytest

from tocsin import checks
from tocsin.checks import Argument, ArgumentError, ArgumentTypeError, Message, message_of


def option(name):
    return f"--{name.replace('_', '-')}"


@pytest.mark.parametrize(
    ("check", "kind", "text"),
    [
        (lambda: checks.integer("longest_gap", -1, least=0), ArgumentError, "must be an integer >= 0, got -1"),
        (lambda: checks.integer("longest_gap", "1", least=0), ArgumentTypeError, "must be an integer >= 0, got '1'"),
        (lambda: checks.number("longest_gap", 2, most=1), ArgumentError, "must be a number <= 1, got 2"),
        (lambda: checks.choice("longest_gap", "c", "ab"), ArgumentError, "must be one of 'a', 'b', got 'c'"),
    ],
)
def test_an_error_knows_its_argument(check, kind, text):
    with pytest.raises(kind) as caught:
        check()
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(error, TypeError if kind is ArgumentTypeError else ValueError)
        assert error.argument == "longest_gap"
        assert str(error) == f"longest_gap {text}"
        assert message_of(error).worded(option) == f"--longest-gap {text}"


def test_a_message_keeps_the_arguments_of_what_it_is_made_of():
    inner = ValueError(Message("omit ", Argument("day_first")))
    outer = Message("pump.csv: ", inner, "; ", ArgumentError("every", "must be 5"), ", or ", 7)
    assert outer == "pump.csv: omit `day_first`; every must be 5, or 7"
    for message in (outer, pickle.loads(pickle.dumps(outer))):
        assert message.worded(option) == "pump.csv: omit --day-first; --every must be 5, or 7"
    assert (
        Message.joined(". ", [outer, "so"]).worded(str.upper) == "pump.csv: omit DAY_FIRST; EVERY must be 5, or 7. so"
    )


def test_anything_else_counts_with_its_text():
    for thing in ("a `time`", ValueError("a `time`"), ValueError("a", "b"), 3.5, Message()):
        assert message_of(thing) == str(thing)
        assert message_of(thing).worded(option) == str(thing)
