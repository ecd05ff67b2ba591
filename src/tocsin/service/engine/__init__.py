"""The engine: takes observations, judges them, stores everything, and returns the verdicts."""

from tocsin.service.engine.engine import Engine
from tocsin.service.engine.pending_imports import Progress, Stage
from tocsin.service.engine.status import Point, SignalDetails, SignalStatus
from tocsin.service.engine.trials import TrialProgress, TrialStage

__all__ = ["Engine", "Point", "Progress", "SignalDetails", "SignalStatus", "Stage", "TrialProgress", "TrialStage"]
