"""Detectors: values in; verdicts, alarms and incidents out."""

from tocsin.detection.audit import Audit
from tocsin.detection.batch import SignalResult, detect_signal, detect_signals
from tocsin.detection.detector import Detector, ResolutionWarning
from tocsin.detection.fleet import Fleet
from tocsin.detection.incidents import Incident
from tocsin.detection.nonconformity import NONCONFORMITIES
from tocsin.detection.result import Result, verdict_columns
from tocsin.detection.results import Results
from tocsin.detection.settings import DetectorSettings
from tocsin.detection.verdict import Verdict, Verdicts
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
