"""Evaluation of p-values: simulations with known truth, calibration measures, and metrics for labelled signals."""

from tocsin.evaluation.calibration import alarm_rate, calibration_gap, error_by_decile
from tocsin.evaluation.families import FAMILIES, Family
from tocsin.evaluation.faults import BASES, FAULTS, Base, FaultKind, FaultySignals
from tocsin.evaluation.machine import Machine, simulate_machine
from tocsin.evaluation.metrics import Evaluation, evaluate, find_window
from tocsin.evaluation.scenarios import SCENARIOS, Scenario, Simulated
from tocsin.evaluation.simulation import METHODS, MethodOutcome, ScenarioResult, SimulationMethod, simulate

__all__ = [
    "BASES",
    "FAMILIES",
    "FAULTS",
    "METHODS",
    "SCENARIOS",
    "Base",
    "Evaluation",
    "Family",
    "FaultKind",
    "FaultySignals",
    "Machine",
    "MethodOutcome",
    "Scenario",
    "ScenarioResult",
    "Simulated",
    "SimulationMethod",
    "alarm_rate",
    "calibration_gap",
    "error_by_decile",
    "evaluate",
    "find_window",
    "simulate",
    "simulate_machine",
]
