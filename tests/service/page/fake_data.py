"""What a monitor could say about a few signals, as its API says it."""

import math
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import compress
from typing import Any
from urllib.parse import quote

HOSTILE = "<img src=x onerror=alert(1)> \"quotes\" 'and' \u202ertl\u200f & " + "long" * 20
STEP = timedelta(seconds=10)

RULES = dict.fromkeys(("valid_range", "limit_high", "limit_low", "min_deviation", "min_level", "no_data_is_zero"), None)
#: What a window has that does not recur.
WINDOW = {"schedule": None, "duration": None, "time_zone": None, "occurrences": []}


def text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def history(count: int, features: int, seed: int, end: datetime) -> dict[str, Any]:
    """Columns of a signal with a daily shape, the last observations strange."""
    rng = random.Random(seed)
    times = [end - STEP * (count - 1 - step) for step in range(count)]
    level = [
        [10 * feature + 40 + 8 * math.sin(step / 40 + feature) for step in range(count)] for feature in range(features)
    ]
    value = [[at + rng.gauss(0, 1) for at in column] for column in level]
    fault = range(count - 30, count - 20)
    for step in fault:
        value[0][step] += 9
    alarm = [step in fault for step in range(count)]
    status = ["maintenance" if count // 2 <= step < count // 2 + 15 else "scored" for step in range(count)]
    return {
        "times": [text(time) for time in times],
        "value": value,
        "forecast": level,
        "low": [[at - 3 for at in column] for column in level],
        "high": [[at + 3 for at in column] for column in level],
        "p": [0.0008 if strange else max(0.011, rng.random()) for strange in alarm],
        "alarm": alarm,
        "warm": [True] * count,
        "status": status,
    }


def between(columns: dict[str, Any], start: str | None, end: str | None) -> dict[str, Any]:
    """The part of a history from one time to another."""
    wanted = [(start or "") <= time <= (end or "~") for time in columns["times"]]
    cut = {
        name: [list(compress(one, wanted)) for one in column]
        if column and isinstance(column[0], list)
        else list(compress(column, wanted))
        for name, column in columns.items()
    }
    return {**cut, "thinned": False}


def signal(
    name: str, now: datetime, seed: int = 0, features: tuple[str, ...] = ("value",), **more: Any
) -> dict[str, Any]:
    columns = history(60, len(features), seed, now)
    alarms = columns["alarm"] if more.get("incident") else [False] * 60
    p = round(random.Random(seed).random(), 4)
    return {
        "name": name, "features": list(features), "unit": "bar", "template": None, "alarm_rate": 0.01,
        "promise": "incidents", "last_time": text(now), "last_arrival": text(now),
        "value": [column[-1] for column in columns["value"]],
        "p": p, "severity": -math.log10(p), "alarm": False, "warm": True, "observations": 4812, "warm_up": 532,
        "own_past_after": 1032,
        "silent": False, "incident": None, "reference": None,
        "recent": list(zip(columns["times"], columns["value"][0], columns["p"], alarms, strict=True)),
    } | more  # fmt: skip


def overview(signals: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """All signals as columns."""
    kept = (
        "name", "features", "unit", "template", "alarm_rate", "promise", "last_time", "value", "p", "severity", "warm",
        "observations", "warm_up", "own_past_after", "silent",
    )  # fmt: skip
    signals = list(signals)
    told = {name: [one[name] for one in signals] for name in kept}
    return {
        **told,
        "quarantined": [one.get("quarantined") for one in signals],
        "pace": [STEP.total_seconds() for _ in signals],
    }


def incident(number: int, name: str, start: datetime, **more: Any) -> dict[str, Any]:
    return {
        "id": number, "signal": name, "kind": "alarm", "start": text(start), "end": text(start + 9 * STEP),
        "peak": text(start + 2 * STEP), "alarms": 7, "duration": 10, "p": 0.0008, "severity": 3.1,
        "level": "warning", "return_period": 8640.0, "seen": 20_000, "began_earliest": None,
        "began_latest": None, "view": "error", "explanation": "9.31 above the forecast", "direction": "above",
        "deviation": 9.31, "features": {"value": 21.0}, "open": True, "opened": text(start), "closed": None,
        "ended": None, "acknowledged": None, "acknowledged_by": None, "snoozed_until": None, "label": None,
        "note": None, "advice": None, "alike": "error · value · above", "occurrence": 1, "first_alike": None,
        "below_minimum": False, "feature_p": {}, "suspects": [],
        "holds": False, "label_of": None, "suppressed": False, "given_back": None, "excluded": False, "withheld": False,
        "event": number,
    } | more  # fmt: skip


def event(number: int, title: str, members: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """An event of these incidents, the first of which moved first."""
    short = [
        {"incident": one["id"], **{key: one[key] for key in ("signal", "start", "severity", "open")}} for one in members
    ]
    return {
        "id": number, "kind": members[0]["kind"], "title": title, "level": "warning", "source": None, "place": None,
        "count": len(members), "signals": len(members), "open_count": sum(one["open"] for one in members),
        "first": short[0], "strongest": max(short, key=lambda one: one["severity"] or 0), "start": short[0]["start"],
        "last_start": short[-1]["start"], "open": True, "opened": short[0]["start"], "closed": None,
        "acknowledged": None, "acknowledged_by": None, "snoozed_until": None, "label": None, "note": None,
        "members": members, "suspects": [],
    } | more  # fmt: skip


def details(features: int) -> dict[str, Any]:
    weights = [[math.exp(-lag / (40 + 60 * feature)) + 0.2 for lag in range(400)] for feature in range(features)]
    return {
        "weights": [[weight / sum(row) for weight in row] for row in weights],
        "window": 400,
        "audit": {
            "promised": 0.01, "rate": 0.012, "observations": 4280, "alarms": 51, "low": 0.008, "high": 0.017,
            "level": 0.99, "finding": "as promised", "faults": 2, "ratio": 1.2, "since": 383, "unit": "incidents",
        },
        "guarantee": "long-run, for any signal: incidents <= alarm_rate * observations + 25",
        "settings": {"alarm_rate": 0.01, "forecaster": "embedded", "preset": "full", "window": 2000},
        "silent_after": None,
        "rules": RULES,
        "memory_bytes": 1_148_000,
    }  # fmt: skip


def status(signals: int, now: datetime) -> dict[str, Any]:
    health = {"last_success": text(now), "last_error": None, "last_error_time": None}
    source = {**health, "received": 1200, "skipped": 0, "left_out": {}}
    return {
        "version": "0.1.0", "ready": True, "progress": "ready", "started": text(now - timedelta(days=3)),
        "uptime": 259_200.0, "signals": signals, "silent": 1, "learning": 0, "open_incidents": 3,
        "waiting": 0,
        "expected_false_incidents": 35.0, "expected_false_reported": 5.0,
        "store_bytes": 734_003_200, "outbox": {"pager": 0},
        "sources": [
            {"name": "plant-mqtt", **source},
            {"name": "prometheus", **source, "last_error": "connection refused", "last_error_time": text(now)},
        ],
        "sinks": [{"name": "pager", **health}],
    }  # fmt: skip


def now() -> datetime:
    return datetime.now(UTC)


def of_signal(name: str) -> str:
    """The address of a signal's view."""
    return f"#/signals/{quote(name, safe='')}"


TEMPLATE = ("match", "features", "silent_after", "unit", *RULES, "every", "aggregate", "peers", "detector")


def template(match: str, **given: Any) -> dict[str, Any]:
    """A template as it is listed, from the file unless something else is given."""
    settings = {"match": match, "features": None, "silent_after": None, "unit": None, "every": None, **RULES}
    settings |= {"aggregate": "mean", "peers": False, "detector": {}}
    origin = {"stored": False, "file": None, "changed": None, "changed_by": None, "problem": None}
    return {**settings, **origin, **given}


def detectable(stage: str, **more: Any) -> dict[str, Any]:
    """What is said of faults that are injected into a signal's past."""
    return {
        "stage": stage, "done": 0, "total": 0, "since": text(now() - 10_000 * STEP), "until": text(now()),
        "sentences": [], "alarm_rate": "1/week", "findings": [], "message": "",
    } | more  # fmt: skip


def template_detectable(stage: str, *tried: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The same of the signals of a template."""
    found = {"stage": stage, "signals": 34, "chosen": 5, "sentences": [], "tried": list(tried), "message": ""}
    return found | more


def many_trial(**more: Any) -> dict[str, Any]:
    """A trial of many signals that is over."""
    found = [("plant/pump 3/pressure", 1, 9), ("hall/door", 2, 5), ("lab/new sensor", 4, 4)]
    return {
        "number": 7, "stage": "done", "signals": 340, "chosen": 20, "tried": 20, "done": 90_000, "incidents": 7,
        "raised": 18, "failed": [], "complete": True, "warm": True, "message": "",
        "found": [{"signal": name, "incidents": new, "raised": old} for name, new, old in found],
    } | more  # fmt: skip
