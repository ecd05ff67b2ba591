"""The engine: takes observations, judges them, stores everything, and returns the verdicts."""

from tocsin.service.engine.engine import Engine
from tocsin.service.engine.lifecycle import Affected
from tocsin.service.engine.pending_imports import Progress, Stage
from tocsin.service.engine.signal_templates import KnownTemplate
from tocsin.service.engine.status import Point, SignalDetails, SignalStatus
from tocsin.service.engine.trial_run import ManyProgress, TrialProgress, TrialStage

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
