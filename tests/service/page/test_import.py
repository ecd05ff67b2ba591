"""History brought in by the page: a real browser and a real monitor."""

import re
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")

from tests.service.test_history import start_of, trying, values, write_csv  # noqa: E402

pytestmark = pytest.mark.slow
expect = sync_api.expect
PATIENCE = 120_000


def test_files_are_chosen_or_dropped_and_their_past_is_shown(browser: sync_api.Browser, tmp_path: Path) -> None:
    given = values(2000)
    start = start_of(len(given) + 10)
    file = write_csv(tmp_path / "pump.csv", start, given)
    with trying(tmp_path, f"sqlite:///{tmp_path / 'own.db'}") as (monitor, receiver):
        page = browser.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{monitor.address}/")
        page.get_by_role("link", name="Import history").click()
        page.get_by_label("Signal").fill("plant/{name}")
        page.locator("input[type=file]").set_input_files(file)
        card = page.locator(".card")
        expect(card).to_contain_text("2,000 observations", timeout=PATIENCE)
        expect(card).to_contain_text(re.compile(r"\d+ past incidents?"), timeout=PATIENCE)
        expect(card.locator("progress")).to_have_count(0)

        # Dropped, and twice: nothing doubles.
        text = file.read_text()
        page.evaluate(
            """text => {
                const data = new DataTransfer();
                data.items.add(new File([text], "pump.csv"));
                document.querySelector(".drop").dispatchEvent(
                    new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
            }""",
            text,
        )
        expect(page.locator(".card").first).to_contain_text("2,000 already stored", timeout=PATIENCE)

        page.locator(".card a").first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("plant/pump")
        expect(page.locator(".cards .card").first).to_contain_text("closed: imported")
        assert monitor.get("/incidents", open=True)["incidents"] == []
        assert receiver.taken == []
        assert complaints == []

        # A file that cannot be read says so, in words.
        page.goto(f"{monitor.address}/#/import?signal=plant%2Fother")
        expect(page.get_by_label("Signal")).to_have_value("plant/other")
        page.locator("input[type=file]").set_input_files(
            {"name": "other.csv", "mimeType": "text/csv", "buffer": b"a,b\nx,y\n"}
        )
        expect(page.locator(".card .failed")).to_contain_text("other.csv", timeout=PATIENCE)
        page.close()
