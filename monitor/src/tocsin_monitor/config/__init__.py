"""The settings of the monitor: a TOML file, environment variables that override it, and their definitions."""

from tocsin_monitor.config.kinds import PushRule, SinkSettings
from tocsin_monitor.config.loading import ConfigError, Layer, Loaded, read_settings, variable_of
from tocsin_monitor.config.section import MqttBroker
from tocsin_monitor.config.server import ServerSettings
from tocsin_monitor.config.settings import PushSettings, Settings
from tocsin_monitor.config.signals import (
    BudgetSettings,
    DependsSettings,
    EventSettings,
    SignalTemplate,
    check_detector,
    with_known_files,
)

__all__ = [
    "BudgetSettings",
    "ConfigError",
    "DependsSettings",
    "EventSettings",
    "Layer",
    "Loaded",
    "MqttBroker",
    "PushRule",
    "PushSettings",
    "ServerSettings",
    "Settings",
    "SignalTemplate",
    "SinkSettings",
    "check_detector",
    "read_settings",
    "variable_of",
    "with_known_files",
]
