"""The settings of the monitor: a TOML file, environment variables above it, and what they are made of."""

from tocsin.service.config.budgets import Budget
from tocsin.service.config.layers import Layer
from tocsin.service.config.loading import ConfigError, Loaded, load_settings, read_settings, variable_of
from tocsin.service.config.server import Engine, Server, Storage
from tocsin.service.config.settings import Settings
from tocsin.service.config.signals import DETECTOR_SETTINGS, Template, check_detector
from tocsin.service.config.sinks import AlertmanagerSink, MqttSink, Sink, Sinks, WebhookSink
from tocsin.service.config.sources import (
    FileSource,
    MqttBroker,
    MqttSource,
    PrometheusQuery,
    PrometheusSource,
    Sources,
)

__all__ = [
    "DETECTOR_SETTINGS",
    "AlertmanagerSink",
    "Budget",
    "ConfigError",
    "Engine",
    "FileSource",
    "Layer",
    "Loaded",
    "MqttBroker",
    "MqttSink",
    "MqttSource",
    "PrometheusQuery",
    "PrometheusSource",
    "Server",
    "Settings",
    "Sink",
    "Sinks",
    "Sources",
    "Storage",
    "Template",
    "WebhookSink",
    "check_detector",
    "load_settings",
    "read_settings",
    "variable_of",
]
