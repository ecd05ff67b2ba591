"""Evaluation of p-values: simulations with known truth, and measures of calibration."""

from tocsin.evaluation.machine import Machine, simulate_machine
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
    "Machine",
    "MethodOutcome",
    "Scenario",
    "ScenarioResult",
    "Simulated",
    "SimulationMethod",
    "alarm_rate",
    "calibration_gap",
    "error_by_decile",
    "simulate",
    "simulate_machine",
]
