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
from tocsin_monitor.config.sinks import AlertmanagerSettings, MqttSinkSettings, WebhookSettings
from tocsin_monitor.config.sources import (
    FileSourceSettings,
    MqttSourceSettings,
    PrometheusQuery,
    PrometheusSourceSettings,
)

__all__ = [
    "AlertmanagerSettings",
    "BudgetSettings",
    "ConfigError",
    "DependsSettings",
    "EventSettings",
    "FileSourceSettings",
    "Layer",
    "Loaded",
    "MqttBroker",
    "MqttSinkSettings",
    "MqttSourceSettings",
    "PrometheusQuery",
    "PrometheusSourceSettings",
    "PushRule",
    "PushSettings",
    "ServerSettings",
    "Settings",
    "SignalTemplate",
    "SinkSettings",
    "WebhookSettings",
    "check_detector",
    "read_settings",
    "variable_of",
    "with_known_files",
]
