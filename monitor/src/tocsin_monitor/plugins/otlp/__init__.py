"""OpenTelemetry's protocol for metrics: its rules."""

from tocsin_monitor.config.kinds import PushRule


class OtlpRule(PushRule):
    """OpenTelemetry; the first match applies. Without rules, all metrics."""

    implementation = "tocsin_monitor.plugins.otlp.route:FORMAT"
