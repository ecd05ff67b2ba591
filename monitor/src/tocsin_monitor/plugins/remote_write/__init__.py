"""Prometheus remote write: its rules."""

from pydantic import Field

from tocsin_monitor.config.kinds import PushRule


class RemoteWriteRule(PushRule):
    """Prometheus remote write; the first match applies. Without rules, all series."""

    implementation = "tocsin_monitor.plugins.remote_write.route:FORMAT"
    rate: bool = Field(default=False, description="Whether these are counters: the increase per second is observed.")
