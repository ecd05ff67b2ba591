"""What a detector guarantees, in words."""

from tocsin.detection.alarm_rate import most_beyond
from tocsin.detection.settings import DetectorSettings


def guarantee_of(settings: DetectorSettings, alarm_rate: float, budget: str | float | None, own_past_after: int) -> str:
    """What is guaranteed, and under which assumption.

    A budget is a number of incidents of all signals together, such as "5/week", or the share of false ones.
    `own_past_after` is after how many observations a signal's own past determines the alarm rate.
    """
    p = "closed loop: in the long run p is below each of ten levels, 0.0005 to 0.5, at most that often"
    if isinstance(budget, str):
        return f"pooled: about {budget} incidents of all signals together, by how rare earlier ones were; {p}"
    if budget is not None:
        return f"estimated: a share of about {budget:g} of all incidents is false, by the signals' own rates; {p}"
    if settings.promise == "observations":
        return p
    beyond = most_beyond(settings.sizes, alarm_rate, settings.extrapolation if settings.early else 1)
    early = (
        f"; estimated: how rare an incident is in the first {own_past_after} observations of a signal"
        if settings.early
        else ""
    )
    return f"long-run, for any sequence: incidents <= alarm_rate * observations + {beyond}; {p}{early}"
