"""The example of settings that `tocsin config example` prints."""

import re
import tomllib

from tocsin_monitor.config import Settings, read_settings
from tocsin_monitor.config.fields import every_setting
from tocsin_monitor.config.writing import example


def uncommented(text):
    """The example with every setting in it taken."""
    return re.sub(r"^#(?=[a-z\[])", "", text, flags=re.MULTILINE)


def settings_in(text, folder):
    file = folder / "example.toml"
    file.write_text(text)
    return read_settings(file, environment={}).settings


def test_the_example_is_the_defaults(tmp_path):
    assert settings_in(example(), tmp_path) == Settings()


def test_the_example_with_everything_taken_is_accepted_and_leaves_nothing_out(tmp_path):
    text = uncommented(example())
    settings = settings_in(text, tmp_path)
    given = tomllib.loads(text)
    for path, _ in every_setting(Settings):
        tree = given
        for step in path:
            tree = tree[step.removesuffix("[]")]
            tree = tree[0] if step.endswith("[]") else tree
    assert settings.storage.keep_observations == Settings().storage.keep_observations
    assert settings.sinks.alertmanager[0].refresh == 60
    assert len({sink.name for kind in type(settings.sinks).model_fields for sink in getattr(settings.sinks, kind)}) == 9
