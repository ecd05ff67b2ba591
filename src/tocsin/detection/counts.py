"""Counts of observations and alarms, for the audit."""

from typing import Any

from numpy.typing import NDArray

from tocsin.compilation import compiled

Array = NDArray[Any]

# Columns of a signal's counts: in all, in the current block, and over completed blocks: their number, the sum of their
# alarms, and the sum of squares.
OBSERVATIONS, ALARMS, BLOCK_OBSERVATIONS, BLOCK_ALARMS, BLOCKS, SUM, SQUARES = 0, 1, 2, 3, 4, 5, 6


@compiled()
def count_alarms(exceeds: Array, counted: Array, rows: Array, block: int, counts: Array) -> None:
    """Add the `counted` observations `[T, N]`, and those that alarm, to the counts of their signals."""
    for n in range(rows.shape[0]):
        count = counts[rows[n]]
        for t in range(exceeds.shape[0]):
            if not counted[t, n]:
                continue
            alarm = 1 if exceeds[t, n] else 0
            count[OBSERVATIONS] += 1
            count[ALARMS] += alarm
            count[BLOCK_OBSERVATIONS] += 1
            count[BLOCK_ALARMS] += alarm
            if count[BLOCK_OBSERVATIONS] == block:
                count[BLOCKS] += 1
                count[SUM] += count[BLOCK_ALARMS]
                count[SQUARES] += count[BLOCK_ALARMS] * count[BLOCK_ALARMS]
                count[BLOCK_OBSERVATIONS] = 0
                count[BLOCK_ALARMS] = 0
