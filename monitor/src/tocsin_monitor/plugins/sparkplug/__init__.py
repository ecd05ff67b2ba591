"""Sparkplug B: the settings of its source."""

from pydantic import Field, field_validator

from tocsin_monitor.config.kinds import SourceSettings
from tocsin_monitor.config.section import MqttBroker, Name, check_placeholders


class SparkplugSourceSettings(MqttBroker, SourceSettings):
    """Observations from Sparkplug B nodes at an MQTT broker."""

    implementation = "tocsin_monitor.plugins.sparkplug.source:SparkplugSource"
    extra = "protobuf"
    name: Name = Field(description="Its name in metrics and logs.", examples=["sparkplug"])
    groups: tuple[str, ...] = Field(default=(), description="Groups of nodes; by default all.", examples=[["plant"]])
    metrics: tuple[str, ...] = Field(
        default=("*",), min_length=1, description="Which metrics, by name: patterns with * and ?."
    )
    signal: str = Field(
        default="{group}/{node}/{device}/{metric}",
        description="The signal's name: {group}, {node}, {device} and {metric}.",
    )
    rebirth: bool = Field(default=True, description="Whether to ask nodes for a birth where one was missed.")

    @field_validator("signal", mode="after")
    @classmethod
    def _from_metric(cls, signal: str) -> str:
        names = ("group", "node", "device", "metric")
        return check_placeholders(signal, "use {group}, {node}, {device} or {metric}", *names)

    @field_validator("groups", mode="after")
    @classmethod
    def _no_patterns(cls, groups: tuple[str, ...]) -> tuple[str, ...]:
        for group in groups:
            if not group or set(group) & set("+#/\0"):
                raise ValueError(f"a group must be a name without +, # and /, got {group!r}")
        return groups
