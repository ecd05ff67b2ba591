"""Bets that alarms come more often than promised for a while.

A bet starts with money, and cannot be expected to win any while each observation alarms with the promised probability
or less, whatever came before. To have 200 times the first stake at any time has a chance of 1 in 200 at most (Ville
1939). So one may look after every observation. A detector that keeps its promise on average, but raises its alarms in
bursts, as on signals whose volatility comes and goes, loses such bets although its counts look well.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.compilation import compiled

Array = NDArray[Any]

# So many times more alarms than promised are bet on.
RATIOS = (3.0, 6.0, 12.0, 24.0)
# In the time in which one alarm is promised, so much of the reserve goes into new bets at first, and less the longer
# nothing came of it; a bet is given up after about that time.
BEGIN = 1.0
GIVE_UP = 1.0
# What was won is forgotten in the time in which so many alarms are promised (to 1/e), and is never more than this: a
# detector that keeps its promise again is believed again. To throw money away keeps the bets fair.
FORGIVEN_IN = 20.0
MOST_WON = 1e5

# Columns of money: what is not bet, what there was when luck turned, and one for each ratio.
RESERVE, TURNED, STAKES = 0, 1, 2
# Columns of notes: the number of the first observation that counted and of the first since luck turned, and the
# observations and alarms since then.
FIRST, SINCE, SINCE_OBSERVATIONS, SINCE_ALARMS = 0, 1, 2, 3
# What the number of an observation is as long as there is none.
NONE = -1


def odds(promised: float, clustering: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By what an alarm multiplies the stake on each ratio, and by what an observation without alarm does.

    Where alarms come in clusters of about `clustering` even if all is well, a cluster wins as much as one alarm.
    """
    bet_on = np.minimum(promised * np.array(RATIOS), (1 + promised) / 2)
    return (bet_on / promised) ** (1 / clustering), ((1 - bet_on) / (1 - promised)) ** (1 / clustering)


def new_money(signals: int) -> NDArray[np.float64]:
    """The money of signals of which nothing was seen."""
    money = np.zeros((signals, STAKES + len(RATIOS)))
    money[:, [RESERVE, TURNED]] = 1.0
    return money


def new_notes(signals: int) -> NDArray[np.int64]:
    """The notes of signals of which nothing was seen."""
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
            begun = own[RESERVE] * min(BEGIN * promised / (1.0 + promised * before), 1.0)
            own[RESERVE] -= begun
            given_up = 0.0
            for k in range(stakes.shape[0]):
                stake = (stakes[k] + begun / stakes.shape[0]) * (wins[k] if exceeds[t, n] else losses[k])
                given_up += GIVE_UP * promised * stake
                stakes[k] = stake - GIVE_UP * promised * stake
            own[RESERVE] += given_up
            was, wealth = wealth, own[RESERVE] + stakes.sum()
            kept = min(1.0, MOST_WON / wealth)
            if wealth > 1.0:
                kept = min(kept, max(1.0 - promised / FORGIVEN_IN, 1.0 / wealth))
            own[RESERVE] *= kept
            stakes *= kept
            wealth = own[RESERVE] + stakes.sum()  # as a call for the next observation would find it, to the last bit
            before += 1
            note[SINCE_OBSERVATIONS] += 1
            note[SINCE_ALARMS] += 1 if exceeds[t, n] else 0
            if wealth <= own[TURNED] or wealth <= 1.0 < was:
                own[TURNED] = wealth
                note[SINCE] = numbers[t, n] + 1
                note[SINCE_OBSERVATIONS] = 0
                note[SINCE_ALARMS] = 0


def settle(money: Array, notes: Array) -> None:
    """Give up one signal's bets, and what they won: what they won by was none of the detector's errors."""
    wealth = min(float(money[RESERVE] + money[STAKES:].sum()), 1.0)
    money[STAKES:] = 0.0
    money[[RESERVE, TURNED]] = wealth
    notes[SINCE] += notes[SINCE_OBSERVATIONS]
    notes[[SINCE_OBSERVATIONS, SINCE_ALARMS]] = 0
