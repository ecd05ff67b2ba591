"""Forecasters by name: the built-in ones, and those of other packages."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from tocsin.forecasting import Autoregression, Forecaster, LastValue, available_forecasters, make_forecaster
from tocsin.forecasting import forecaster as contract
from tocsin.forecasting.forecaster import BUILT_IN, RegisteredForecaster

ADAPTERS = ("stats", "chronos", "ttm", "flowstate", "tirex")


def test_every_built_in_forecaster_is_there_once():
    names = [entry.name for entry in BUILT_IN]
    assert len(names) == len(set(names))
    assert set(names) == {
        "embedded", "autoregression", "last-value", "seasonal-naive", "exponential-smoothing",
    }  # fmt: skip
    entries = available_forecasters()
    assert {*names, *ADAPTERS} <= entries.keys()
    assert [entries[name] for name in names] == list(BUILT_IN)


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry.name)
def test_a_name_makes_its_forecaster(entry):
    assert entry.missing == ()
    assert entry.about
    forecaster = make_forecaster(entry.name)
    assert forecaster.name == entry.name
    assert forecaster.extra is None
    assert make_forecaster(entry.name, {}).parameters() == forecaster.parameters()
    assert make_forecaster(entry.name, forecaster.parameters()).parameters() == forecaster.parameters()


@pytest.mark.parametrize("name", ADAPTERS)
def test_who_needs_an_extra_says_which(name, monkeypatch):
    """As where nothing of it is installed; the class's own name agrees with the entry point's."""
    entry = available_forecasters()[name]
    modules = entry.load().modules
    assert modules
    assert entry.load().name == name
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    assert entry.missing == modules
    with pytest.raises(ImportError, match=rf"'{name}' needs {', '.join(modules)}: pip install 'tocsin\["):
        make_forecaster(name)


def test_a_module_that_cannot_be_found_is_named(monkeypatch):
    monkeypatch.setattr(LastValue, "modules", ("json", "no_such_module", "nor_this"))
    monkeypatch.setattr(LastValue, "extra", "tocsin[some]")
    offered(monkeypatch, needy="tocsin.forecasting:LastValue")
    assert available_forecasters()["needy"].missing == ("no_such_module", "nor_this")
    with pytest.raises(ImportError) as caught:
        make_forecaster("needy", {"model": "x"})
    assert str(caught.value) == "forecaster 'needy' needs no_such_module, nor_this: pip install 'tocsin[some]'"


@pytest.mark.parametrize("name", ["prophet", "", "Last-Value", "last_value", None, 3])
def test_an_unknown_name_is_answered_with_the_known_ones(name):
    with pytest.raises(
        ValueError, match=r"forecaster must be one of 'embedded', 'autoregression', 'last-value', .*, got "
    ) as error:
        make_forecaster(name)
    assert str(error.value).endswith(f"got {name!r}")


def test_a_required_argument_is_asked_for(monkeypatch):
    class Picky(LastValue):
        def __init__(self, model, *, place, colour="red"):
            super().__init__()

    monkeypatch.setattr(contract, "BUILT_IN", (RegisteredForecaster("picky", ""),))
    monkeypatch.setattr(RegisteredForecaster, "load", lambda self: Picky)
    with pytest.raises(ValueError, match=r"^forecaster 'picky' needs the argument 'model', 'place', got \{\}$"):
        make_forecaster("picky")
    with pytest.raises(ValueError, match=r"^forecaster 'picky' needs the argument 'place', got \{'model': 1\}$"):
        make_forecaster("picky", {"model": 1})


@pytest.mark.parametrize(
    ("name", "options", "kind", "message"),
    [
        ("last-value", {"colour": 1}, TypeError, r"forecaster 'last-value' does not take \{'colour': 1\}: .*"),
        ("autoregression", {"lag": 3}, TypeError, r"forecaster 'autoregression' does not take .*'lag'"),
        ("autoregression", {3: 3}, TypeError, r"forecaster 'autoregression' does not take \{3: 3\}"),
        ("seasonal-naive", {"period": "day"}, TypeError, r"'seasonal-naive' does not take .*period must be .* 'day'"),
        ("seasonal-naive", {"period": 1}, ValueError, r"period must be .*, got 1"),
        ("exponential-smoothing", {"rate": 2}, ValueError, r"rate must be .*, got 2"),
    ],
)
def test_a_wrong_option_is_named(name, options, kind, message):
    with pytest.raises(kind, match=message):
        make_forecaster(name, options)


def test_options_are_left_as_they_were():
    options = {"lags": 5, "period": 9}
    forecaster = make_forecaster("autoregression", options)
    assert isinstance(forecaster, Autoregression)
    assert (forecaster.lags, forecaster.period) == (5, 9)
    assert options == {"lags": 5, "period": 9}


def offered(monkeypatch, **points):
    listed = [EntryPoint(name, value, contract.ENTRY_POINTS) for name, value in points.items()]
    monkeypatch.setattr(contract, "entry_points", lambda group: listed)
    monkeypatch.setattr(contract, "_installed", contract._installed.__wrapped__)


def test_only_forecasters_are_let_in(monkeypatch):
    offered(monkeypatch, a="json:dumps", b="collections:OrderedDict", c="json:nothing", d="json")
    for name in "abcd":
        assert name in available_forecasters()
        with pytest.raises(TypeError, match=f"^forecaster '{name}' must be a subclass of tocsin.Forecaster, got "):
            make_forecaster(name)


def test_packages_are_searched_once(monkeypatch):
    """A monitor asks for each new signal, and a search reads files."""
    available_forecasters()
    monkeypatch.setattr(contract, "entry_points", None)
    assert {*ADAPTERS} <= available_forecasters().keys()


def test_a_broken_offer_disturbs_nobody_else(monkeypatch):
    offered(monkeypatch, broken="no_such_module:Thing", odd="!", good="tocsin.forecasting:LastValue [extra]")
    assert isinstance(make_forecaster("good"), LastValue)
    assert isinstance(make_forecaster("last-value"), LastValue)
    with pytest.raises(ImportError, match="no_such_module"):
        make_forecaster("broken")


def test_built_in_names_cannot_be_taken(monkeypatch):
    offered(monkeypatch, **{"last-value": "json:dumps", "mine": "tocsin.forecasting:LastValue"})
    assert available_forecasters()["last-value"] in BUILT_IN
    assert isinstance(make_forecaster("last-value"), LastValue)
    assert issubclass(available_forecasters()["mine"].load(), Forecaster)


MODULE = """
import numpy as np
from tocsin.forecasting import ContextForecaster, Forecast

class Zero(ContextForecaster):
    'The same value, always.'

    name = "zero"

    def __init__(self, value=0.0):
        super().__init__(context_length=3)
        self.value = value

    def parameters(self):
        return {"value": self.value}

    def _predict(self, contexts, horizon):
        return Forecast(np.full((contexts.shape[0], horizon), self.value))

class NoForecaster:
    pass
"""
OFFER = """
[tocsin.forecasters]
zero = other_package:Zero
no = other_package:NoForecaster
last-value = other_package:Zero
"""
SCRIPT = """
import sys
from tocsin.forecasting import available_forecasters, make_forecaster
entries = available_forecasters()
print("other_package" in sys.modules)
print(entries["zero"].about)
print(make_forecaster("zero", {"value": 2.5}).forecast([[1.0, 3.0]], 2).median.tolist())
print(repr(make_forecaster("last-value")))
for name, options in [("no", {}), ("zero", {"colour": 1})]:
    try:
        make_forecaster(name, options)
    except TypeError as error:
        print(error)
try:
    make_forecaster("nought")
except ValueError as error:
    print("'zero'" in str(error))
"""


@pytest.mark.slow
def test_another_package_offers_a_forecaster(tmp_path):
    """A distribution as an installer leaves it: a module, and a folder that says what it offers."""
    (tmp_path / "other_package.py").write_text(MODULE)
    about = tmp_path / "other_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(OFFER)
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[:4] == ["False", "The same value, always.", "[[2.5, 2.5]]", "LastValue()"]
    assert lines[4].startswith("forecaster 'no' must be a subclass of tocsin.Forecaster, got <class")
    assert lines[5].startswith("forecaster 'zero' does not take {'colour': 1}:")
    assert lines[6] == "True"
