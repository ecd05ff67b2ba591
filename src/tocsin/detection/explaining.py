"""Plain-language explanations of verdicts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tocsin.conformal.scorer import Floats
from tocsin.detection.verdict import LOG_10, MAY_END, ONGOING, Verdict, Verdicts
from tocsin.detection.views import View


@dataclass(frozen=True)
class Explanation:
    """The view that contributes most, the feature (None for all of them together), and an explanation."""

    view: str
    feature: str | None
    text: str


def name_and_unit(feature: str) -> tuple[str, str]:
    """A feature's name and its unit, which may follow in brackets; "" if there is none.

    >>> name_and_unit("pressure [bar]"), name_and_unit("flow")
    (('pressure', 'bar'), ('flow', ''))
    """
    found = re.fullmatch(r"(.*\S)\s*\[([^\[\]]+)\]\s*", feature)
    return (found[1], found[2]) if found else (feature, "")


def explain(
    verdicts: Verdicts, step: int, signal: int, views: Sequence[View], features: Sequence[str]
) -> Explanation | None:
    """Why an observation is anomalous; None if there is no explanation."""
    number, stream, feature = (int(one) for one in verdicts.cause[step, signal])
    if number < 0:
        return None
    view = views[number]
    name = features[feature] if feature >= 0 else None
    plain, unit = ("", "") if name is None else name_and_unit(name)
    text = view.words(stream, float(verdicts.score[step, signal]), unit)
    return Explanation(view.name, name, f"{plain}: {text}" if plain and len(features) > 1 else text)


def verdict_on(
    verdicts: Verdicts, step: int, signal: int, time: Any, views: Sequence[View], features: Sequence[str]
) -> Verdict:
    """The verdict on one observation of one signal."""
    single = verdicts.value.shape[2] == 1

    def plain(array: Floats) -> Any:
        return array.item(step, signal, 0) if single else array[step, signal].copy()

    alarm = verdicts.alarm.item(step, signal)
    # Only alarms need an explanation, and wording one takes as long as a view.
    why = explain(verdicts, step, signal, views, features) if alarm else None
    severities = (verdicts.views[step, signal] / LOG_10).tolist()
    return Verdict(
        time=time,
        value=plain(verdicts.value),
        p=verdicts.p.item(step, signal),
        alarm=alarm,
        forecast=plain(verdicts.forecast),
        low=plain(verdicts.low),
        high=plain(verdicts.high),
        severity=verdicts.evidence.item(step, signal) / LOG_10,
        return_period=1.0 / verdicts.rate.item(step, signal),
        feature_p=plain(verdicts.feature_p),
        views=dict(zip((view.name for view in views), severities, strict=True)),
        view=why.view if why else None,
        feature=why.feature if why else None,
        explanation=why.text if why else None,
        open=verdicts.state.item(step, signal) in (MAY_END, ONGOING),
        warm=verdicts.warm.item(step, signal),
        estimated=verdicts.estimated.item(step, signal),
    )
