"""The quick reader of times against the slow one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tocsin_monitor import observations
from tocsin_monitor.as_json import time_text
from tocsin_monitor.observations import moment_of

texts = st.from_regex(
    r"(1[89]|2[0-2])\d\d-[01]\d-[0-3]\d[T ][0-2]\d:[0-6]\d:[0-6]\d(\.\d{1,10})?(Z|\+01:00)?", fullmatch=True
)
numbers = st.integers(-(10**20), 10**20) | st.sampled_from([10**k + d for k in range(8, 20) for d in (-1, 0, 1)])
reals = st.floats(allow_nan=False) | st.floats(1e9, 1e10) | st.floats(1e12, 1e13)


@given(texts | numbers | reals | st.text(max_size=5))
@example("2026-02-29T00:00:00Z")
@example("2024-02-29T23:59:59.999999999Z")
@example(1_700_000_000.0000005)
def test_times_are_read_as_by_moment_of(time: str | int | float) -> None:
    try:
        expected: int | None = moment_of(time)
    except (ValueError, OverflowError):
        expected = None
    if expected is None:
        with pytest.raises(ValueError, match="time"):
            observations.time_of(time)
    else:
        assert observations.time_of(time) == expected


@given(st.integers(-(2**62), 2**62), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_what_is_written_is_read_as_the_same(time: int, unit: int) -> None:
    time -= time % unit
    assert observations.time_of(time_text(time)) == time
