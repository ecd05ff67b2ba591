"""The engine: takes observations, judges them, stores everything, and returns the verdicts."""

from tocsin_monitor.engine.detectability import DetectableProgress, TemplateDetectable
from tocsin_monitor.engine.engine import Engine
from tocsin_monitor.engine.lifecycle import Affected
from tocsin_monitor.engine.pending_imports import Progress
from tocsin_monitor.engine.signal_templates import KnownTemplate
from tocsin_monitor.engine.signals import Point, SignalDetails, SignalStatus
from tocsin_monitor.engine.trials import ManyProgress, SignalFinding, TrialProgress

__all__ = [
    "Affected",
    "DetectableProgress",
    "Engine",
    "KnownTemplate",
    "ManyProgress",
    "Point",
    "Progress",
    "SignalDetails",
    "SignalFinding",
    "SignalStatus",
    "TemplateDetectable",
    "TrialProgress",
]
