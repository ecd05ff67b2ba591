"""InfluxDB's line protocol: its rules."""

from pydantic import Field

from tocsin_monitor.config.kinds import PushRule
from tocsin_monitor.config.section import LabelPattern


class InfluxRule(PushRule):
    """InfluxDB's line protocol; the first match applies. Without rules, all fields."""

    implementation = "tocsin_monitor.plugins.influx.route:FORMAT"
    match: str = Field(default="*", min_length=1, description="Which measurements: a pattern with * and ?.")
    signal: LabelPattern | None = Field(
        default=None,
        description="The signal's name: {measurement}, {field} and tags; by default all of them.",
        examples=["{host}/{measurement}"],
    )
    fields: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="Fields that are the features of one signal; by default each field is a signal.",
        examples=[["usage_user", "usage_system"]],
    )
    rate: bool = Field(default=False, description="Whether these are counters: the increase per second is observed.")
