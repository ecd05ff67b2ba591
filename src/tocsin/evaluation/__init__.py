"""Evaluation: what a detector can find in a signal, simulations with known truth, and measures of calibration."""

from tocsin.evaluation.detectability import Detectability, Finding, detectable
from tocsin.evaluation.machine import Machine, simulate_machine
from tocsin.evaluation.several import median_and_worst
from tocsin.evaluation.simulation import (
    METHODS,
    SCENARIOS,
    MethodOutcome,
    Scenario,
    ScenarioResult,
    Simulated,
    SimulationMethod,
    alarm_rate,
    calibration_gap,
    error_by_decile,
    simulate,
)

__all__ = [
    "METHODS",
    "SCENARIOS",
    "Detectability",
    "Finding",
    "Machine",
    "MethodOutcome",
    "Scenario",
    "ScenarioResult",
    "Simulated",
    "SimulationMethod",
    "alarm_rate",
    "calibration_gap",
    "detectable",
    "error_by_decile",
    "median_and_worst",
    "simulate",
    "simulate_machine",
]
