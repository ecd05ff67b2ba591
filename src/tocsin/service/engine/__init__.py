"""Observations in, verdicts out, everything durable: the thread that scores."""

from tocsin.service.engine.engine import Engine
from tocsin.service.engine.pending_imports import Progress, Stage
from tocsin.service.engine.status import Point, SignalDetails, SignalStatus
from tocsin.service.engine.trials import TrialProgress, TrialStage

__all__ = ["Engine", "Point", "Progress", "SignalDetails", "SignalStatus", "Stage", "TrialProgress", "TrialStage"]
