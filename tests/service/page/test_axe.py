"""Every view for those who use a screen reader or the keyboard alone: checked by axe-core, light and dark."""

from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.cases import full  # noqa: E402
from tests.service.page import fake_data as data  # noqa: E402
from tests.service.page.fake_data import of_signal  # noqa: E402

AXE = Path(__file__).parents[3] / "node_modules/axe-core/axe.min.js"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm install"),
]
PUMP = "plant/pump 4/vibration"
VIEWS = {
    "list": ("#/", ".windowed .row", ()),
    "nothing found": ("#/?search=nothing", ".empty p", ()),
    "tree": ("#/?view=tree", ".row.level", ("Select",)),
    "level": ("#/?view=tree&level=plant", ".path", ()),
    "signal": (of_signal(PUMP), ".charts canvas", ()),
    "settings": (of_signal(PUMP), ".panels canvas", ("Change settings",)),
    "incidents": ("#/incidents?show=all", ".card", ()),
    "incident": ("#/incidents/3", ".charts canvas", ()),
    "label": ("#/incidents/3", ".charts canvas", ("Label",)),
    "snooze": ("#/incidents/3", ".charts canvas", ("Snooze",)),
    "maintenance": ("#/maintenance", ".card", ()),
    "window": ("#/maintenance", ".card", ("Add a window",)),
    "status": ("#/status", ".panel", ()),
    "template": ("#/status", ".panel .card code", ("Change line */motor *",)),
    "new template": ("#/status", ".panel .card code", ("Add a template…",)),
    "file again": ("#/status", ".panel .card code", ("Use the file's again pump/*", "Try on stored observations")),
    "bulk settings": ("#/?search=pump", ".windowed .row", ("Select", "Settings…", "Try on stored observations")),
    "access log": ("#/access-log", ".card", ()),
    "import": ("#/import", ".drop", ()),
    "wall": ("#/wall", ".tile", ()),
    "views": ("#/", ".windowed .row", ("Views",)),
    "keys": ("#/", ".windowed .row", ("Keyboard shortcuts",)),
    "unknown": ("#/nowhere", "h1", ()),
}


@pytest.mark.parametrize(
    ("scheme", "views"),
    [("light", ("list", "tree", "signal", "incident", "template", "wall")), full("light", VIEWS), full("dark", VIEWS)],
    ids=["some", "light", "dark"],
)
def test_no_view_has_serious_problems(opened, monitor, scheme, views):
    time = data.text(monitor.now)
    monitor.deeds = [{"id": 1, "time": time, "who": "ana", "action": "POST", "target": "/maintenance", "details": "{}"}]
    monitor.templates.append(data.template("pump/*", stored=True, file={"match": "pump/*", "detector": {"gap": 4}}))
    monitor.trials = [data.many_trial() for _ in range(4)]
    page = opened(color_scheme=scheme)
    found = {}
    for name in views:
        address, shown, pressed = VIEWS[name]
        page.goto("about:blank")
        page.goto(f"{monitor.url}/{address}")
        page.wait_for_selector(shown)
        for button in pressed:
            page.get_by_role("button", name=button, exact=True).first.click()
        page.evaluate(AXE.read_text())
        results = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        for one in results["violations"]:
            if one["impact"] in ("serious", "critical"):
                found[name, one["id"]] = [(node["html"][:160], node["failureSummary"][:200]) for node in one["nodes"]][
                    :3
                ]
    assert found == {}


def test_every_control_of_a_view_is_reached_by_tab(opened, monitor):
    """Whatever can be clicked can be reached; charts are for pointers, and their ranges have fields as well."""
    page = opened("#/?view=tree")
    page.wait_for_selector(".row.level")
    page.get_by_role("button", name="Select", exact=True).click()
    wanted = page.evaluate(
        """() => {
            const all = [...document.querySelectorAll('a[href], button, input, select, textarea')];
            // Rows come and go as one moves through them: those in sight at first count.
            const inSight = one => one.getBoundingClientRect().bottom < innerHeight || !one.closest('.windowed');
            const seen = all.filter(one => one.checkVisibility() && !one.disabled && inSight(one));
            seen.forEach((one, at) => { one.dataset.control = at; });
            document.activeElement.blur();
            scrollTo(0, 0);
            return seen.length;
        }"""
    )
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement?.dataset.control"))
        if len(reached) > wanted:
            break
    assert {str(number) for number in range(wanted)} <= reached
