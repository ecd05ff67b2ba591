"""The settings of the monitor: a TOML file, environment variables that override it, and their definitions."""

from tocsin_monitor.config.kinds import SinkSettings, SourceSettings
from tocsin_monitor.config.loading import ConfigError, Layer, Loaded, read_settings, variable_of
from tocsin_monitor.config.push import InfluxRule, OtlpRule, PushRule, PushSettings, RemoteWriteRule
from tocsin_monitor.config.server import EngineSettings, ServerSettings, StorageSettings
from tocsin_monitor.config.settings import Settings
from tocsin_monitor.config.signals import (
    DETECTOR_SETTINGS,
    BudgetSettings,
    EventSettings,
    SignalTemplate,
    check_detector,
)
from tocsin_monitor.config.sinks import AlertmanagerSettings, MqttSinkSettings, Sinks, WebhookSettings
from tocsin_monitor.config.sources import (
    FileSourceSettings,
    MqttBroker,
    MqttSourceSettings,
    OpcUaNode,
    OpcUaSourceSettings,
    PrometheusQuery,
    PrometheusSourceSettings,
    Sources,
    SparkplugSourceSettings,
)

__all__ = [
    "DETECTOR_SETTINGS",
    "AlertmanagerSettings",
    "BudgetSettings",
    "ConfigError",
    "EngineSettings",
    "EventSettings",
    "FileSourceSettings",
    "InfluxRule",
    "Layer",
    "Loaded",
    "MqttBroker",
    "MqttSinkSettings",
    "MqttSourceSettings",
    "OpcUaNode",
    "OpcUaSourceSettings",
    "OtlpRule",
    "PrometheusQuery",
    "PrometheusSourceSettings",
    "PushRule",
    "PushSettings",
    "RemoteWriteRule",
    "ServerSettings",
    "Settings",
    "SignalTemplate",
    "SinkSettings",
    "Sinks",
    "SourceSettings",
    "Sources",
    "SparkplugSourceSettings",
    "StorageSettings",
    "WebhookSettings",
    "check_detector",
    "read_settings",
    "variable_of",
]
