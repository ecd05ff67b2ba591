"""What can be found in several signals, such as pumps that are alike: the median signal and the worst."""

from collections.abc import Mapping, Sequence

from tocsin.detection import length_text
from tocsin.detection.incidents.verdict import name_and_unit
from tocsin.evaluation.detectability import SIZES, Detectability, Finding, fault_words, share_words, smallest_found

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
    rate = rates.pop() if len(rates) == 1 else "each signal's alarm rate"
    said = []
    for (feature, _), sizes in by_fault.items():
        text = f"at {rate}, in the median of {len(sizes)} signals, {_words(found, sizes)}"
        said.append(f"{name_and_unit(feature)[0]}: {text}" if several else text)
    return said


def _words(found: Mapping[str, Detectability], sizes: Sizes) -> str:
    middle = len(sizes) // 2
    levels = sorted(_level(one) for one in sizes.values())
    level = min(levels[middle], max(map(len, sizes.values())) - 1)
    at = {name: one[level] for name, one in sizes.items()}
    timed = all(found[name].interval is not None for name in at)

    def badness(name: str) -> tuple[bool, float]:
        one, step = at[name], found[name].interval
        if one.within is None:
            return True, -one.found / one.cases
        return False, one.within * step if timed and step is not None else one.within

    ordered = sorted(at, key=lambda name: (badness(name), name))
    median, worst = ordered[middle], ordered[-1]
    shown = found[median]
    what = fault_words(at[median].fault, _size(found, at, level), length_text(shown.lasts, shown.interval))
    text = f"{what} is found {shown.how_found(at[median])} ({share_words(at[median])})"
    if badness(worst) == badness(median):
        return f"{text}; no signal is worse"
    return f"{text}; in the worst, {worst}, {found[worst].how_found(at[worst])}"


def _level(sizes: Sequence[Finding]) -> int:
    """The place of the smallest size that is found with all larger ones; the number of sizes if none is."""
    smallest = smallest_found(sizes)
    return len(sizes) if smallest.within is None else sizes.index(smallest)


def _size(found: Mapping[str, Detectability], at: Mapping[str, Finding], level: int) -> str:
    """A size that is the same in standard deviations: in the signals' unit, if they have one and are of one scale."""
    units = {found[name].unit_of(one) for name, one in at.items()}
    sizes = [one.size for one in at.values()]
    low, high = min(sizes), max(sizes)
    if len(units) > 1 or high > ALIKE * low:
        return f"{SIZES[next(iter(at.values())).fault][level]:g} sd of its own noise"
    return f"{low:g}{f' to {high:g}' if high > low else ''} {units.pop()}".rstrip()
