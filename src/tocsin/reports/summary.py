"""A detector's findings in a few lines: how much was watched, what was tolerated and what was found."""

from collections.abc import Sequence

from tocsin.detection import SignalResult
from tocsin.detection.audit import audit_together
from tocsin.detection.history_budget import HistoryBudget
from tocsin.detection.incident_words import time_text


def audit_summary(results: Sequence[SignalResult]) -> str:
    """How much was watched, promised and observed counts, and the audit over all signals."""
    observations = sum(result.observations for result in results)
    audits = [result.audit for result in results if result.audit is not None]
    signals = f" of {len(results)} signals" if len(results) > 1 else ""
    line = f"{observations:,} observations{signals}"
    if not any(audit.observations for audit in audits):
        return f"{line}, all of them warm-up"
    audit = audit_together(audits)
    expected = audit.promised * audit.observations
    line += f"; after warm-up {audit.alarms:,} {audit.unit}, {expected:,.3g} tolerated (true faults count too)"
    low, high = audit.low / audit.promised, audit.high / audit.promised
    line = f"{line}\n{audit.in_words()} ({audit.level:.0%} sure: {low:.2g} to {high:.2g} times)"
    return f"{line}\n{_judged(results[0])}" if len(results) == 1 and results[0].judged_since is not None else line


def _judged(result: SignalResult) -> str:
    """From when there could be alarms, and how they were decided."""
    since, own = result.judged_since, result.own_past_since
    if own is None:
        return f"judged since {time_text(since)}, by an estimate: the signal is too short for its own past to tell"
    if own == since:
        return f"judged since {time_text(since)}, by its own past"
    return f"judged since {time_text(since)}; by its own past since {time_text(own)}, before that estimated"


def budget_summary(results: Sequence[SignalResult], shared: HistoryBudget, proposed: int) -> str:
    """How much was watched, and how many of the proposed incidents the shared budget allowed."""
    observations = sum(result.observations for result in results)
    told = sum(len(result.incidents) for result in results)
    line = f"{observations:,} observations of {shared.signals} signal{'s' if shared.signals != 1 else ''}"
    if isinstance(shared.budget, str):
        return f"{line}; budget {shared.budget}: the {told:,} rarest of {proposed:,} incidents (true faults count too)"
    share = f"about {shared.budget:.0%} of them false, by the signals' own estimates"
    return f"{line}; {told:,} of {proposed:,} incidents, {share}"
