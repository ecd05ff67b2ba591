"""The files for operators: they parse, they are accepted by what reads them, and name only what there is."""

import configparser
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.service.process import MonitorProcess
from tests.service.test_tls import make_certificate
from tocsin.data import parse_duration
from tocsin_monitor.config import ServerSettings, read_settings
from tocsin_monitor.engine.engine import TIME_TO_CUT, TIME_TO_STOP
from tocsin_monitor.http.server import PATIENCE
from tocsin_monitor.http.status import SignalMetrics
from tocsin_monitor.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "tocsin.rules.yml"
SIGNAL_RULES = DEPLOY / "prometheus" / "tocsin.signals.rules.yml"
SCRAPE = DEPLOY / "prometheus" / "scrape.yml"
DASHBOARD = DEPLOY / "grafana" / "tocsin.json"
UNIT = DEPLOY / "systemd" / "tocsin.service"
NAME = re.compile(r"\btocsin_[a-z_]+")
RECORDED = re.compile(r"\w+:tocsin_\w+:\w+")


SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}


def exposed():
    """Every name under which Prometheus gets a sample."""
    families = [*Metrics().registry.collect(), *SignalMetrics().collect()]
    return {family.name + suffix for family in families for suffix in SUFFIXES.get(family.type, [""])}


def labels_of():
    """The labels of each metric, by all names it goes by."""
    own = {name: metric._labelnames for name, metric in Metrics().registry._names_to_collectors.items()}
    return own | {family.name: family._labelnames for family in SignalMetrics().collect()}


def recorded():
    """The recording rules, by name."""
    (group,) = yaml.safe_load(SIGNAL_RULES.read_text())["groups"]
    return {rule["record"]: rule["expr"] for rule in group["rules"]}


def expressions():
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    yield from recorded().items()
    board = json.loads(DASHBOARD.read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


EXPRESSIONS = list(expressions())


@pytest.mark.slow
@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
def test_only_metrics_that_there_are(where, expression):
    expression = re.sub(r'"[^"]*"', '""', expression)
    rules = RECORDED.findall(expression)
    assert set(rules) <= set(recorded())
    used = NAME.findall(RECORDED.sub("", expression))
    assert set(used) <= exposed()
    assert used or rules or "up{" in expression


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
def test_only_labels_that_there_are(where, expression):
    known = labels_of()
    scraped = {"job", "instance", "le"}
    for name, inside in re.findall(r"\b(tocsin_[a-z_]+)\{([^}]*)\}", expression):
        assert set(re.findall(r"(\w+)\s*=", inside)) <= {*known[name], *scraped}, name
    for by in re.findall(r"by \(([^)]*)\)", expression):
        used = {*NAME.findall(expression)} - {"tocsin_signal_outside"}  # that one is a rule's
        assert {label.strip() for label in by.split(",")} <= {*scraped, *(one for name in used for one in known[name])}


def test_every_metric_is_on_the_dashboard():
    board = DASHBOARD.read_text()
    for family in [*Metrics().registry.collect(), *SignalMetrics().collect()]:
        assert family.name in board or family.name == "tocsin_signal_last_time_seconds", family.name
    for rule in recorded():
        if rule != "signal:tocsin_signal_outside:bool":  # from which the count is made
            assert rule in board


def test_the_dashboard_can_be_imported_anywhere():
    board = json.loads(DASHBOARD.read_text())
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", board["uid"])
    assert board["templating"]["list"][0]["type"] == "datasource"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] == "${datasource}"


def test_every_rule_says_what_it_means():
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert {"summary", "description"} <= set(rule["annotations"])


needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def promtool(*arguments, cwd=None):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_accepts_rules_and_configuration():
    promtool("check", "rules", RULES)
    promtool("check", "rules", SIGNAL_RULES)
    promtool("check", "config", SCRAPE)


SERIES = {
    "TocsinDown": ('up{job="tocsin", instance="a"}', "0x30", "1x30"),
    "TocsinRestarting": ("tocsin_up_since_seconds", "0+7x30", "5x30"),
    "TocsinNotReady": ('tocsin_http_requests_total{status="503"}', "0+2x30", "3x30"),
    "TocsinOverloaded": ('tocsin_rejected_total{reason="overloaded"}', "0+9x30", "4x30"),
    "TocsinOutboxStuck": (
        'tocsin_outbox_waiting{sink="a"}',
        "2x30",
        "2 0 2 2 0 2 2 0 2 2 0 2 2 0 2 0 0 2 2 2 2 0 2 2 0 2 0",
    ),
    "TocsinSourceFailing": ('tocsin_source_errors_total{source="a"}', "0+1x30", "1x30"),
    "TocsinSignalsSilent": ("tocsin_signals_silent", "1x30", "0x30"),
    "TocsinTickSlow": ('tocsin_tick_seconds_bucket{le="2.5"}', "0+9x30", None),
}


@needs_promtool
@pytest.mark.parametrize("sick", [True, False], ids=["sick", "well"])
def test_rules_fire_when_they_should_and_only_then(tmp_path, sick):
    series, cases = [], []
    for alert, (name, when_sick, when_well) in SERIES.items():
        values = when_sick if sick else when_well
        if values is not None:
            series.append({"series": name, "values": values})
        cases.append({"eval_time": "25m", "alertname": alert, "exp_alerts": []})
    if sick:
        # Nine in ten turns take more than two seconds.
        series.append({"series": 'tocsin_tick_seconds_bucket{le="1.0"}', "values": "0+1x30"})
        series.append({"series": 'tocsin_tick_seconds_bucket{le="+Inf"}', "values": "0+9x30"})
    test = {"rule_files": [str(RULES)], "evaluation_interval": "1m"}
    test["tests"] = [{"interval": "1m", "input_series": series, "alert_rule_test": cases}]
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump(test))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True)
    fired = set(re.findall(r"alertname: (\w+),", done.stdout + done.stderr))
    assert fired == (set(SERIES) if sick else set()), done.stdout + done.stderr
    assert (done.returncode == 0) is not sick


@needs_promtool
def test_recording_rules_record_what_they_say(tmp_path):
    """One signal is above its band, one inside, and one has no lower bound."""
    labels = (f'{{job="j", instance="i", feature="value", signal="{name}"}}' for name in "abc")
    series = []
    for where, (value, low, high) in zip(labels, [("5", "1", "3"), ("2", "1", "3"), ("2", "-Inf", "3")], strict=True):
        for name, text in (("value", value), ("low", low), ("high", high), ("forecast", "2")):
            series.append({"series": f"tocsin_signal_{name}{where}", "values": f"{text} {text}"})
    for state, count in (("watched", "1"), ("silent", "0")):
        where = f'{{job="j", instance="i", signal="a", state="{state}"}}'
        series.append({"series": f"tocsin_signal_state{where}", "values": f"{count} {count}"})
    series.append({"series": 'tocsin_signal_incident_open{signal="a"}', "values": "0 1"})
    series.append({"series": 'tocsin_signal_last_time_seconds{signal="a"}', "values": "0 10"})

    def case(expression, *samples):
        return {"expr": expression, "eval_time": "1m", "exp_samples": [
            {"labels": labels, "value": value} for labels, value in samples
        ]}  # fmt: skip

    cases = [
        case(
            "instance:tocsin_signal_outside:count", ('instance:tocsin_signal_outside:count{job="j", instance="i"}', 1)
        ),
        case(
            'instance:tocsin_signal_state:count{state="watched"}',
            ('instance:tocsin_signal_state:count{job="j", instance="i", state="watched"}', 1),
        ),
        case(
            'signal:tocsin_signal_deviation:abs{signal="a"}',
            ('signal:tocsin_signal_deviation:abs{job="j", instance="i", feature="value", signal="a"}', 3),
        ),
        case("signal:tocsin_signal_incident_open:avg1d", ('signal:tocsin_signal_incident_open:avg1d{signal="a"}', 0.5)),
        case("signal:tocsin_signal_age:seconds", ('signal:tocsin_signal_age:seconds{signal="a"}', 50)),
    ]
    test = {"rule_files": [str(SIGNAL_RULES)], "evaluation_interval": "1m"}
    test["tests"] = [{"interval": "1m", "input_series": series, "promql_expr_test": cases}]
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump(test))
    promtool("test", "rules", file)


def test_the_example_configuration_is_accepted():
    loaded = read_settings(DEPLOY / "tocsin.toml", environment={})
    assert loaded.settings.template_for("pump/7").features == ("vibration", "temperature")
    assert loaded.settings.sources.mqtt[0].topics
    assert loaded.settings.sinks.alertmanager
    assert tomllib.loads((DEPLOY / "tocsin.toml").read_text())


def unit():
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str
    parser.read_string(UNIT.read_text())
    return parser["Service"]


def test_the_service_is_confined():
    service = unit()
    for name in ("DynamicUser", "NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictSUIDSGID"):
        assert service[name] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    # Not by --data, which would go above a database of the settings.
    assert f"TOCSIN_STORAGE__FOLDER=/var/lib/{service['StateDirectory']}" in service["Environment"].split()
    assert "--data" not in service["ExecStart"]


def test_the_service_calls_commands_that_there_are():
    for name in ("ExecStart", "ExecStartPre"):
        words = unit()[name].split()[1:]
        assert words[:1] == ["serve"] or words[:2] == ["config", "check"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_service(tmp_path):
    # The program is not installed here: one that is takes its place.
    copy = tmp_path / "tocsin.service"
    copy.write_text(UNIT.read_text().replace("/opt/tocsin/bin/tocsin", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "tocsin.service" not in done.stderr


def test_the_image_runs_as_nobody_in_particular_and_has_no_build_tools():
    text = (DEPLOY / "Containerfile").read_text()
    final = text[text.rindex("\nFROM ") :]
    assert re.search(r"^USER tocsin$", final, re.MULTILINE)
    assert re.search(r"^VOLUME /data$", final, re.MULTILINE)
    assert "HEALTHCHECK" in final
    assert "STOPSIGNAL SIGTERM" in final
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert set(bases) == {"${PYTHON}"}
    assert re.search(r"^ARG PYTHON=\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    assert "pip install" not in final
    assert "apt-get" not in text
    for source in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for name in source.split():
            assert (DEPLOY.parent / name).exists(), name


def container():
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str
    parser.read_string((DEPLOY / "podman" / "tocsin.container").read_text())
    return parser


def seconds(text):
    return int(parse_duration(text) / np.timedelta64(1, "s"))


def compose():
    return yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())


def test_the_compose_file_has_probes_limits_and_a_volume():
    """It says the same as the image and the podman service, and names only what there is."""
    whole = compose()
    (service,) = whole["services"].values()
    assert (DEPLOY / "compose" / service["build"]["context"] / service["build"]["dockerfile"]).resolve().is_file()
    check = service["healthcheck"]
    assert ["CMD", *container()["Container"]["HealthCmd"].split()] == check["test"]
    for name, of_podman in (
        ("interval", "HealthInterval"),
        ("timeout", "HealthTimeout"),
        ("start_period", "HealthStartPeriod"),
    ):
        assert seconds(check[name]) == seconds(container()["Container"][of_podman])
    assert seconds(service["stop_grace_period"]) == int(container()["Container"]["StopTimeout"])
    assert service["ulimits"]["nofile"] >= ServerSettings().max_connections
    assert {"mem_limit", "cpus", "pids_limit"} <= set(service)
    assert (service["read_only"], service["cap_drop"], service["tmpfs"]) == (True, ["ALL"], ["/tmp"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    for port in service["ports"]:
        assert port.startswith("127.0.0.1:")  # beyond, only through a proxy with TLS
    data, settings = (one.split(":") for one in service["volumes"])
    assert data[0] in whole["volumes"]
    assert f"VOLUME {data[1]}" in (DEPLOY / "Containerfile").read_text()
    assert settings[1:] == [service["command"][-1], "ro"]
    assert service["command"][:2] == ["serve", "--config"]
    read = read_settings(DEPLOY / "compose" / settings[0], environment={}).settings
    assert read.templates[0].rules.outside(("value",), (850.0,)) == ("value", 850.0, 650.0)


def test_who_stops_it_gives_it_the_time_it_needs():
    needed = PATIENCE + TIME_TO_STOP + TIME_TO_CUT
    assert seconds(unit()["TimeoutStopSec"]) > needed
    assert int(container()["Container"]["StopTimeout"]) > needed
    assert seconds(container()["Service"]["TimeoutStopSec"]) > int(container()["Container"]["StopTimeout"])
    assert f"--stop-timeout {container()['Container']['StopTimeout']}" in (DEPLOY / "Containerfile").read_text()
    for limit in (unit()["LimitNOFILE"], container()["Container"]["Ulimit"].split(":")[1]):
        assert int(limit) > ServerSettings().max_connections


def test_the_health_check_is_the_same_everywhere():
    text = (DEPLOY / "Containerfile").read_text()
    assert "COPY deploy/healthcheck.py /opt/tocsin/healthcheck.py" in text
    assert container()["Container"]["HealthCmd"] == "python /opt/tocsin/healthcheck.py"
    assert '["python", "/opt/tocsin/healthcheck.py"]' in text


@pytest.mark.full
@pytest.mark.parametrize("tls", [False, True])
def test_the_health_check_finds_the_monitor(tmp_path, tls):
    def healthy():
        environment = {"TOCSIN_CONFIG": str(monitor.config), "TOCSIN_SERVER__PORT": str(monitor.port)}
        return subprocess.run([sys.executable, str(DEPLOY / "healthcheck.py")], env=environment).returncode == 0

    config, certificate = "", None
    if tls:
        certificate, key = make_certificate(tmp_path)
        config = f'[server]\ntls_certificate = "{certificate}"\ntls_key = "{key}"\n'
    with MonitorProcess(tmp_path, config, certificate=certificate) as monitor:
        assert not healthy()
        monitor.start()
        assert healthy()
        monitor.stop()
        assert not healthy()
