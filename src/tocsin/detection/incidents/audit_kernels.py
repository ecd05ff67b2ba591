"""Counts of observations and alarms for the audit, and bets against the promise that win if alarms are too frequent.

The bets are a nonnegative supermartingale while each observation alarms with at most the promised probability, whatever
came before. The probability of ever reaching 200 times the first stake is then at most 1 in 200 (Ville 1939), so one
may look after every observation. Bets win against a detector that keeps its promise on average but alarms in bursts, as
on signals whose volatility varies, although its counts look fine.
"""

from typing import Any

import numpy as np
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


# The bets are on this many times the promised alarms.
RATIOS = (3.0, 6.0, 12.0, 24.0)
# Winnings decay to 1/e in the expected time of this many alarms, and are capped: a detector that keeps its promise
# again regains trust. Throwing money away keeps the bets fair.
FORGIVEN_IN = 20.0
MOST_WON = 1e5

# Columns of money: the reserve, the wealth at the last turning point, and one for each ratio.
RESERVE, TURNED, STAKES = 0, 1, 2
# Columns of notes: the number of the first counted observation and of the first since the turning point, and the
# observations and alarms since then.
FIRST, SINCE, SINCE_OBSERVATIONS, SINCE_ALARMS = 0, 1, 2, 3
# The number of an observation that does not exist yet.
NONE = -1


def odds(promised: float, clustering: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The factors by which an alarm, and an observation without alarm, multiply the stake on each ratio.

    If alarms come in clusters of about `clustering` even without faults, a cluster wins as much as one alarm.
    """
    bet_on = np.minimum(promised * np.array(RATIOS), (1 + promised) / 2)
    return (bet_on / promised) ** (1 / clustering), ((1 - bet_on) / (1 - promised)) ** (1 / clustering)


def new_money(signals: int) -> NDArray[np.float64]:
    """The money of new signals."""
    money = np.zeros((signals, STAKES + len(RATIOS)))
    money[:, [RESERVE, TURNED]] = 1.0
    return money


def new_notes(signals: int) -> NDArray[np.int64]:
    """The notes of new signals."""
    notes = np.zeros((signals, SINCE_ALARMS + 1), dtype=np.int64)
    notes[:, [FIRST, SINCE]] = NONE
    return notes


@compiled()
def bet(
    exceeds: Array, counted: Array, numbers: Array, rows: Array, seen: Array, promised: float, wins: Array,
    losses: Array, money: Array, notes: Array,
) -> None:  # fmt: skip
    """Bet on each observation `[T, N]` that is `counted`; `seen[N]` is how many counted before the first of them."""
    for n in range(rows.shape[0]):
        own, note = money[rows[n]], notes[rows[n]]
        stakes = own[STAKES:]
        before = seen[n]
        wealth = own[RESERVE] + stakes.sum()
        for t in range(exceeds.shape[0]):
            if not counted[t, n]:
                continue
            if note[FIRST] == NONE:
                note[FIRST] = numbers[t, n]
                note[SINCE] = numbers[t, n]
            # The reserve goes into new bets in the expected time of one alarm, more slowly while they win nothing. A
            # bet is closed after about that time.
            begun = own[RESERVE] * min(promised / (1.0 + promised * before), 1.0)
            own[RESERVE] -= begun
            given_up = 0.0
            for k in range(stakes.shape[0]):
                stake = (stakes[k] + begun / stakes.shape[0]) * (wins[k] if exceeds[t, n] else losses[k])
                given_up += promised * stake
                stakes[k] = stake - promised * stake
            own[RESERVE] += given_up
            was, wealth = wealth, own[RESERVE] + stakes.sum()
            kept = min(1.0, MOST_WON / wealth)
            if wealth > 1.0:
                kept = min(kept, max(1.0 - promised / FORGIVEN_IN, 1.0 / wealth))
            own[RESERVE] *= kept
            stakes *= kept
            wealth = own[RESERVE] + stakes.sum()  # as a call for the next observation would compute it, bit for bit
            before += 1
            note[SINCE_OBSERVATIONS] += 1
            note[SINCE_ALARMS] += 1 if exceeds[t, n] else 0
            if wealth <= own[TURNED] or wealth <= 1.0 < was:
                own[TURNED] = wealth
                note[SINCE] = numbers[t, n] + 1
                note[SINCE_OBSERVATIONS] = 0
                note[SINCE_ALARMS] = 0


def close_bets(money: Array, notes: Array) -> None:
    """Close one signal's bets and drop their winnings, which did not come from the detector's errors."""
    wealth = min(float(money[RESERVE] + money[STAKES:].sum()), 1.0)
    money[STAKES:] = 0.0
    money[[RESERVE, TURNED]] = wealth
    notes[SINCE] += notes[SINCE_OBSERVATIONS]
    notes[[SINCE_OBSERVATIONS, SINCE_ALARMS]] = 0
