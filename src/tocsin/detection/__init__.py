"""Detectors: values in; verdicts, alarms and incidents out."""

from tocsin.detection.batch import SignalResult, detect_signal, detect_signals
from tocsin.detection.detector import Detector, ResolutionWarning
from tocsin.detection.fleet import Fleet
from tocsin.detection.incidents.audit import Audit
from tocsin.detection.incidents.incident import Incident
from tocsin.detection.incidents.verdict import Verdict, Verdicts
from tocsin.detection.results import Result, Results, verdict_columns
from tocsin.detection.settings.detector_settings import NONCONFORMITIES, DetectorSettings
from tocsin.detection.watching import Watch

__all__ = [
    "NONCONFORMITIES",
    "Audit",
    "Detector",
    "DetectorSettings",
    "Fleet",
    "Incident",
    "ResolutionWarning",
    "Result",
    "Results",
    "SignalResult",
    "Verdict",
    "Verdicts",
    "Watch",
    "detect_signal",
    "detect_signals",
    "verdict_columns",
]
