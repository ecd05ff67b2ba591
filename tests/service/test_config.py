"""The settings: where they come from, what is refused, and that no secret is ever shown."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from tocsin_monitor.cli.monitoring import settings_of
from tocsin_monitor.config import ConfigError, Layer, Settings, read_settings, variable_of
from tocsin_monitor.config.fields import every_setting
from tocsin_monitor.config.writing import MASK, effective

SECRET = "hunter2-7f3a"

EVERYTHING = f"""
[server]
port = 9000
[storage]
url = "postgresql://someone:{SECRET}@db/tocsin"
keep_observations = "30d"
[detector]
alarm_rate = "1/day"
interval = "1min"
[[templates]]
match = "pump/*"
features = ["vibration", "temperature"]
detector = {{alarm_rate = 0.001}}
[[sources.mqtt]]
name = "plant"
topics = ["plant/#"]
password = "{SECRET}"
[[sources.prometheus]]
name = "metrics"
bearer_token = "{SECRET}"
queries = [{{query = "up"}}]
[[sinks.webhook]]
name = "chat"
url = "https://hooks.example.com/{SECRET}"
headers = {{X-Key = "{SECRET}"}}
[[sinks.alertmanager]]
name = "am"
bearer_token = "{SECRET}"
[[sinks.mqtt]]
name = "broker"
password = "{SECRET}"
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="tocsin.toml"):
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


def read(file=None, **variables):
    return read_settings(file, environment=variables)


def problems(file=None, **variables):
    with pytest.raises(ConfigError) as caught:
        read(file, **variables)
    return "\n".join(caught.value.problems)


def test_defaults_listen_on_loopback_only():
    settings = read().settings
    assert settings == Settings()
    assert settings.server.loopback
    assert settings.store_url == "sqlite:///tocsin-data/tocsin.db"


def test_a_file_is_read(write):
    settings = read(write(EVERYTHING)).settings
    assert settings.server.port == 9000
    assert settings.storage.keep_observations == 30 * 86400
    assert settings.detector_for("pump/1") == {"alarm_rate": 0.001, "interval": "1min"}
    assert settings.detector_for("fan/1") == {"alarm_rate": "1/day", "interval": "1min"}
    assert settings.store_url == f"postgresql+psycopg://someone:{SECRET}@db/tocsin"


def test_options_go_above_variables_and_variables_above_the_file(write):
    file = write("[server]\nport = 1\nhost = '127.0.0.2'\nburst = 7\n")
    variables = {"TOCSIN_SERVER__PORT": "2", "TOCSIN_SERVER__HOST": "127.0.0.3"}
    loaded = read_settings(file, [Layer("--port", {"server": {"port": 3}})], variables)
    server = loaded.settings.server
    assert (server.port, server.host, server.burst) == (3, "127.0.0.3", 7)
    origins = {path: origin for path, _, origin in effective(loaded.settings, loaded.layers)}
    assert origins["server.port"] == "--port"
    assert origins["server.host"] == "TOCSIN_SERVER__HOST"
    assert origins["server.burst"] == str(file)
    assert origins["server.max_body_bytes"] is None


def test_the_environment_of_the_process_is_read(monkeypatch):
    monkeypatch.setenv("TOCSIN_SERVER__PORT", "8123")
    assert read_settings().settings.server.port == 8123
    assert Settings().server.port == 8710, "only loading reads the environment"


def test_a_whole_section_as_json_lies_below_its_settings():
    loaded = read(TOCSIN_SERVER='{"port": 1, "burst": 5}', TOCSIN_SERVER__PORT="2")
    assert (loaded.settings.server.port, loaded.settings.server.burst) == (2, 5)


def test_variables_may_be_in_small_letters_and_names_in_a_file_are_exact(write):
    loaded = read(tocsin_server__port="8123")
    assert loaded.settings.server.port == 8123
    assert ("server.port", "8123", "tocsin_server__port") in effective(loaded.settings, loaded.layers)
    assert "Server: there is no such setting: did you mean server?" in problems(write("[Server]\nport = 8123"))


def test_numbers_of_the_detector_are_numbers_and_its_texts_texts():
    loaded = read(TOCSIN_DETECTOR__ALARM_RATE="0.001", TOCSIN_DETECTOR='{"gap": 3}', TOCSIN_DETECTOR__INTERVAL="1min")
    assert loaded.settings.detector == {"alarm_rate": 0.001, "gap": 3, "interval": "1min"}


PLAIN = [path for path, _ in every_setting(Settings) if not any(step.endswith("[]") for step in path)]


@pytest.mark.parametrize("path", PLAIN, ids=".".join)
def test_every_setting_has_a_variable(path):
    """A text that most refuse: it must reach exactly that setting, and be taken there or refused by its name."""
    name = variable_of(path)
    text = '{"nonsense": 1}' if path == ("detector",) else "nonsense"
    try:
        loaded = read(**{name: text})
    except ConfigError as error:
        (problem,) = error.problems
        assert problem.startswith((".".join(path) + ":", name, "server: tls_certificate"))
    else:
        changed = [where for where, _, origin in effective(loaded.settings, loaded.layers) if origin]
        assert changed == [".".join(path)]


def test_lists_and_tables_come_as_json():
    loaded = read(
        TOCSIN_SERVER__ALLOWED_HOSTS='["a.example", "b.example"]',
        TOCSIN_TEMPLATES='[{"match": "x*", "unit": "mm/s"}]',
        TOCSIN_SOURCES__MQTT='[{"name": "m", "topics": ["t"]}]',
        TOCSIN_DETECTOR__ALARM_RATE="1/week",
        TOCSIN_DETECTOR__INTERVAL="1min",
        TOCSIN_DETECTOR__GAP="5",
        TOCSIN_ENGINE__AUTO_CREATE="false",
        TOCSIN_STORAGE__KEEP_OBSERVATIONS="2w",
        TOCSIN_STORAGE__KEEP_INCIDENTS="3600",
    ).settings
    assert loaded.server.allowed_hosts == ("a.example", "b.example")
    assert loaded.templates[0].unit == "mm/s"
    assert loaded.sources.mqtt[0].topics == ("t",)
    assert loaded.detector == {"alarm_rate": "1/week", "interval": "1min", "gap": 5}
    assert loaded.engine.auto_create is False
    assert loaded.storage.keep_observations == 14 * 86400
    assert loaded.storage.keep_incidents == 3600
    assert "TOCSIN_SERVER__ALLOWED_HOSTS must be JSON" in problems(TOCSIN_SERVER__ALLOWED_HOSTS="a.example")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TOCSIN_SERVER__PROT", "TOCSIN_SERVER__PORT"),
        ("TOCSIN_SERVR__PORT", "TOCSIN_SERVER__PORT"),
        ("TOCSIN_ENGINE__MAX_WAITNG", "TOCSIN_ENGINE__MAX_WAITING"),
        ("TOCSIN_LOG_LEVEL__X", "TOCSIN_LOG_LEVEL"),
    ],
)
def test_a_misspelt_variable_is_an_error(name, meant):
    assert f"{name}: there is no such setting: did you mean {meant}?" in problems(**{name: "1"})


def test_a_variable_that_may_be_misspelt_is_told_of():
    warnings = read(TOCSIN_SERVER_PORT="1", TOCSIN_LOGLEVEL="info").warnings
    assert warnings[0] == "TOCSIN_SERVER_PORT is not a setting and is ignored: did you mean TOCSIN_SERVER__PORT?"
    assert "TOCSIN_LOG_LEVEL" in warnings[1]
    # What others put into the environment is none of our business.
    assert not read(TOCSIN_TOKEN="x", TOCSIN_PORT_8710_TCP="tcp://10.0.0.1", TOCSIN_SERVICE_HOST="10.0.0.1").warnings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nport = 99999", "server.port: must be less than or equal to 65535, got 99999"),
        ("[server]\nport = 'x'", "server.port: must be a valid integer, unable to parse string as an integer, got 'x'"),
        ("[server]\nallowed_hosts = 'a'", "server.allowed_hosts: must be a list, got 'a'"),
        ("[server]\nallowed_hosts = ['http://a']", "server.allowed_hosts: must be names or addresses without scheme"),
        (
            "[engine]\nauto_create = 'maybe'",
            "engine.auto_create: must be a valid boolean, unable to interpret input, got 'maybe'",
        ),
        ("[sources.mqtt]\nname = 'x'", "sources.mqtt: must be a list of tables: in TOML, [[sources.mqtt]]"),
        ("[[sources.mqtt]]\nname = 'a b'\ntopics = ['x']", "sources.mqtt[0].name: must be 1 to 64 letters, digits"),
        ("[[sources.mqtt]]\nname = 'a'\ntopics = []", "sources.mqtt[0].topics: must have at least 1 item"),
        ("[[sources.files]]\nname = 'a'\npath = 'b'\ntime_format = '%Q'", "sources.files[0].time_format: 'Q' is a bad"),
        ("[[sinks.mqtt]]\nname = 'a'\ntopic = 'a/#'", "sinks.mqtt[0].topic: must be a topic to publish to"),
        ("[server]\nprot = 1", "server.prot: there is no such setting: did you mean port?"),
        ("[server]\ntls_key = 'x'", "server: tls_certificate and tls_key go together"),
        ("[server]\nexternal_url = 'monitor'", "server.external_url: must begin with http:// or https://"),
        ("zzz = 1", "zzz: there is no such setting; known settings: log_level, log_format, server"),
        ("log_level = 'loud'", "log_level: must be 'debug', 'info', 'warning' or 'error', got 'loud'"),
        ("[storage]\nkeep_observations = 'long'", "storage.keep_observations: expected a duration such as"),
        ("[storage]\nkeep_observations = -1", "storage.keep_observations: must be greater than 0"),
        ("[storage]\nurl = 'mysql://x'", "storage.url: must begin with one of postgresql://"),
        ("[detector]\nalarm = 1", "detector: a detector has no setting alarm; it has alarm_rate"),
        ("[detector]\nalarm_rate = 2", "detector: "),
        ("[detector]\nforecaster_options = {model = 'x'}", "detector: forecaster 'embedded' does not take"),
        ("[detector]\nforecaster = 'chronos'\nforecaster_options = {model = 'x'}", "forecaster 'chronos' needs"),
        ("[[templates]]\nmatch = 'x'\ndetector = {gap = 'y'}", "templates[0].detector: gap must be an integer"),
        ("[[sources.mqtt]]\nname = 'm'", "sources.mqtt[0].topics: Field required"),
        ("[[sources.mqtt]]\nname = 'm m'\ntopics = ['t']", "sources.mqtt[0].name: "),
        (
            "[[sources.mqtt]]\nname = 'm'\ntopics = ['t']\nsignal = '{who}'",
            "sources.mqtt[0].signal: {who} is not a known placeholder",
        ),
        ("[[sources.mqtt]]\nname = 'm'\ntopics = ['t']\nsignal = '{'", "sources.mqtt[0].signal: "),
        (
            "[[sources.prometheus]]\nname = 'p'\nqueries = [{query = 'up', signal = '{a b}'}]",
            "sources.prometheus[0].queries[0].signal: a field of a template must be a name or a number in braces",
        ),
        ("[[sinks.mqtt]]\nname = 'm'\ntopic = 'x/{topic}'", "sinks.mqtt[0].topic: {topic} is not a known placeholder"),
        ("[[sinks.webhook]]\nname = 'a'\nurl = 'http://x'\n[[sinks.mqtt]]\nname = 'a'", "a more than once"),
        ("nonsense", "is not valid TOML: "),
    ],
)
def test_what_is_wrong_is_said(write, text, said):
    assert said in problems(write(text))


def test_everything_wrong_is_said_at_once_with_where_it_came_from(write):
    file = write("[server]\nport = -1\nburst = 0\n")
    said = problems(file, TOCSIN_ENGINE__THREADS="many", TOCSIN_ENGINE__THREAD="1")
    assert f"server.port: must be greater than or equal to 0, got -1 ({file})" in said
    assert f"got 0 ({file})" in said
    assert "got 'many' (TOCSIN_ENGINE__THREADS)" in said
    assert "TOCSIN_ENGINE__THREAD: there is no such setting" in said


def test_a_file_that_is_not_there(tmp_path):
    assert "nothing.toml cannot be read: No such file" in problems(tmp_path / "nothing.toml")


def test_secrets_from_files(write):
    secret = write(f"{SECRET}\n", "secret")
    text = f"[[sources.mqtt]]\nname = 'm'\ntopics = ['t']\npassword = {{file = '{secret}'}}\n"
    text += f"[[sinks.webhook]]\nname = 'w'\nurl = {{file = '{write('https://x.example/y', 'url')}'}}\n"
    text += f"headers = {{X-Key = {{file = '{secret}'}}}}\n"
    settings = read(write(text)).settings
    assert settings.sources.mqtt[0].password == SecretStr(SECRET)
    assert settings.sinks.webhook[0].url == "https://x.example/y"
    assert settings.sinks.webhook[0].headers == {"X-Key": SecretStr(SECRET)}

    address = write(f"postgresql://u:{SECRET}@h/d", "address")
    from_variable = read(TOCSIN_STORAGE__URL__FILE=str(address)).settings
    assert from_variable.store_url == f"postgresql+psycopg://u:{SECRET}@h/d"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{file = '/nowhere/x'}", "storage.url: /nowhere/x cannot be read"),
        ("{path = '/x'}", 'storage.url: must be text or {file = "/path"}'),
        ("{file = '/dev/null'}", "storage.url: /dev/null is empty"),
    ],
)
def test_a_secret_that_cannot_be_read(write, given, said):
    assert said in problems(write(f"[storage]\nurl = {given}"))


def test_secrets_are_never_shown(write):
    loaded = read(write(EVERYTHING))
    shown = effective(loaded.settings, loaded.layers)
    assert SECRET not in str(shown)
    assert SECRET not in repr(loaded.settings)
    masked = [path for path, text, _ in shown if MASK in text]
    assert masked == [
        "storage.url",
        "sources.mqtt[0].password",
        "sources.prometheus[0].bearer_token",
        "sinks.alertmanager[0].bearer_token",
        "sinks.webhook[0].url",
        "sinks.webhook[0].headers.X-Key",
        "sinks.mqtt[0].password",
    ]


def test_secrets_in_addresses_are_never_shown(write):
    text = f"[server]\nexternal_url = 'https://me:{SECRET}@monitor.example'\n"
    text += f"[[sources.prometheus]]\nname = 'p'\nurl = 'http://me:{SECRET}@prometheus'\nqueries = [{{query = 'up'}}]\n"
    text += f"[[sinks.alertmanager]]\nname = 'a'\nurl = 'http://manager/path?token={SECRET}'\n"
    loaded = read(write(text))
    shown = {path: value for path, value, _ in effective(loaded.settings, loaded.layers)}
    assert SECRET not in str(shown)
    assert SECRET not in repr(loaded.settings.sinks)
    assert SECRET not in repr(loaded.settings.sources)
    assert shown["sources.prometheus[0].url"] == f'"http://{MASK}@prometheus"'
    assert shown["sinks.alertmanager[0].url"] == f'"http://manager/path?{MASK}"'


@pytest.mark.parametrize(
    "text",
    [
        f"[storage]\nurl = 'x:{SECRET}'",
        f"[[sources.prometheus]]\nname = 'p'\nurl = 'htp://me:{SECRET}@prometheus'\nqueries = [{{query = 'up'}}]",
        f"[server]\nexternal_url = 'ftp://me:{SECRET}@monitor.example'",
        f"[storage]\npasword = '{SECRET}'",
        f"[[sources.mqtt]]\nname = 'm'\npassword = '{SECRET}'",
        f"[[sources.mqtt]]\nname = 'm'\ntopics = ['t']\npassword = ['{SECRET}']",
        f"[[sinks.webhook]]\nname = 'w'\nurl = 'hooks/{SECRET}'",
        f"[[sinks.webhook]]\nname = 'w'\nurl = 'http://x'\nheaders = {{a = ['{SECRET}']}}",
        f"[[sinks.webhook]]\nname = 'w'\nurl = 'http://x'\nheaders = '{SECRET}'",
        f"sinks = {{webhook = {{url = '{SECRET}'}}}}",
        f"sinks = '{SECRET}'",
    ],
)
def test_errors_do_not_repeat_secrets(write, text):
    said = problems(write(text))
    assert said
    assert SECRET not in said


def test_every_setting_says_what_it_is():
    for path, setting in every_setting(Settings):
        assert setting.field.description, path


def test_an_empty_topic_is_none(write):
    file = write("[[sources.mqtt]]\nname = 'm'\ntopics = ['t']\nresults_topic = ''\n")
    assert read(file).settings.sources.mqtt[0].results_topic is None


def test_a_folder_that_was_asked_for_goes_above_a_database(write):
    file = write("[storage]\nurl = 'postgresql://a@b/c'\nfolder = 'elsewhere'\nkeep_observations = '3d'\n")
    assert settings_of(file, None).store_url == "postgresql+psycopg://a@b/c"
    asked = settings_of(file, Path("/srv/x"))
    assert asked.store_url == "sqlite:////srv/x/tocsin.db"
    assert asked.storage.keep_observations == 3 * 86400


def test_a_folder_becomes_the_store(write):
    assert read(TOCSIN_STORAGE__FOLDER="/srv/x").settings.store_url == "sqlite:////srv/x/tocsin.db"
    assert read(TOCSIN_STORAGE__FOLDER="/srv/x").settings.storage.folder == Path("/srv/x")
