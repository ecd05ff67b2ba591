"""What can be found in several signals, such as pumps that are alike: the median signal and the worst."""

from collections.abc import Mapping, Sequence

from tocsin.detection import length_text
from tocsin.detection.incidents.verdict import name_and_unit
from tocsin.evaluation.detectability import (
    SIZES,
    Detectability,
    Finding,
    fault_words,
    rate_words,
    share_words,
    smallest_found,
)

#: Sizes that differ by no more than this factor are stated in the signals' unit, others in sd of each signal's noise.
ALIKE = 1.5

Sizes = Mapping[str, Sequence[Finding]]


def median_and_worst(found: Mapping[str, Detectability]) -> list[str]:
    """For each feature and kind of fault, what is found in the median of these signals, by name, and in the worst.

    Each sentence is about the smallest fault, in standard deviations of a signal's own noise, that more than half of
    the signals find together with all larger ones; about the largest if there is none. A single signal has its own
    `sentences`.
    """
    if len(found) == 1:
        return next(iter(found.values())).sentences
    by_fault: dict[tuple[str, str], dict[str, list[Finding]]] = {}
    for name, signal in found.items():
        for one in signal.findings:
            by_fault.setdefault((one.feature, one.fault), {}).setdefault(name, []).append(one)
    several = len({feature for feature, _ in by_fault}) > 1
    rates = {signal.alarm_rate for signal in found.values()}
    rate = rate_words(rates.pop()) if len(rates) == 1 else "each signal's alarm rate"
    said = []
    for (feature, fault), sizes in by_fault.items():
        # A feature may change in one of them only.
        whose = f"the median of {len(sizes)} signals" if len(sizes) > 1 else next(iter(sizes))
        text = f"at {rate}, in {whose}, {_words(found, fault, sizes)}"
        said.append(f"{name_and_unit(feature)[0]}: {text}" if several else text)
    return said


def _words(found: Mapping[str, Detectability], fault: str, sizes: Sizes) -> str:
    middle = len(sizes) // 2
    levels = sorted(_level(one) for one in sizes.values())
    level = min(levels[middle], len(SIZES[fault]) - 1)
    at = {name: one[level] for name, one in sizes.items()}
    steps = {name: found[name].interval for name in at}
    timed = None not in steps.values()  # else delays are compared by their number of observations

    def badness(name: str) -> tuple[bool, float]:
        one = at[name]
        if one.within is None:
            return True, -one.found / one.cases
        return False, one.within * (steps[name] or 1.0 if timed else 1.0)

    ordered = sorted(at, key=lambda name: (badness(name), name))
    median, worst = ordered[middle], ordered[-1]
    shown = found[median]
    what = fault_words(fault, _size(found, at, SIZES[fault][level]), length_text(shown.lasts, shown.interval))
    text = f"{what} is found {shown.how_found(at[median])} ({share_words(at[median])})"
    if badness(worst) == badness(median):
        return text if len(at) == 1 else f"{text}; no signal is worse"
    return f"{text}; in the worst, {worst}, {found[worst].how_found(at[worst])}"


def _level(sizes: Sequence[Finding]) -> int:
    """The place of the smallest size that is found with all larger ones; the number of sizes if none is."""
    smallest = smallest_found(sizes)
    return len(sizes) if smallest.within is None else sizes.index(smallest)


def _size(found: Mapping[str, Detectability], at: Mapping[str, Finding], sd: float) -> str:
    """A size that is so many standard deviations in all: in the signals' unit, if they share it and their scale."""
    units = {found[name].unit_of(one) for name, one in at.items()}
    sizes = [one.size for one in at.values()]
    low, high = min(sizes), max(sizes)
    if len(units) > 1 or high > ALIKE * low:
        return f"{sd:g} sd of its own noise"
    amount = f"between {low:g} and {high:g}" if high > low else f"{low:g}"
    return f"{amount} {units.pop()}".rstrip()
