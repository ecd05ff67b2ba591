"""The engine: takes observations, judges them, stores everything, and returns the verdicts."""

from tocsin.service.engine.engine import Engine
from tocsin.service.engine.many_trials import ManyProgress
from tocsin.service.engine.pending_imports import Progress, Stage
from tocsin.service.engine.row_changes import Affected
from tocsin.service.engine.status import Point, SignalDetails, SignalStatus
from tocsin.service.engine.templates import KnownTemplate
from tocsin.service.engine.trial_run import TrialProgress, TrialStage

__all__ = [
    "Affected",
    "Engine",
    "KnownTemplate",
    "ManyProgress",
    "Point",
    "Progress",
    "SignalDetails",
    "SignalStatus",
    "Stage",
    "TrialProgress",
    "TrialStage",
]
