"""The pictures of the server's page in `docs/serving.md`.

    pip install playwright
    python benchmarks/serving/page_pictures.py

serves the phrases, opens the page in a Chromium that is installed, types a date
and points at a word of its translation. It writes a picture of each width in
pixels to `docs/pictures/`. Look at them.
"""

import pathlib
import shutil
import sys
import tempfile

from playwright import sync_api
from servers import PHRASES, ROOT, ours

TEXT, TRANSLATION, WORD = (
    "Monday, March 3, 2025",
    "Montag, 3. März 2025",
    "März",
)
WIDTHS = {"page.png": 1280, "page_360.png": 360}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def draw(browser, address, width, path):
    """Writes a picture of the whole page."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(address)
    page.locator("#text").press_sequentially(TEXT, delay=20)
    heard = page.locator("#heard")
    sync_api.expect(heard).to_have_text(TRANSLATION, timeout=60_000)
    # Its inside, if the model can be looked into.
    page.wait_for_selector(".small, .lacking:not([hidden])", timeout=60_000)
    page.locator(".rows.large").get_by_text(WORD).hover()
    page.wait_for_timeout(1000)  # Until no colour changes any more.
    page.screenshot(path=path, full_page=True)
    page.close()


def main():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        sys.exit(f"Expected one of {', '.join(BROWSERS)} on the PATH.")
    with (
        tempfile.TemporaryDirectory() as folder,
        ours(pathlib.Path(folder) / "log", PHRASES) as server,
        sync_api.sync_playwright() as play,
    ):
        browser = play.chromium.launch(
            executable_path=path,
            # As root, as in a container, Chromium has no sandbox.
            args=["--no-sandbox"],
        )
        address = server.url.partition("/v1/")[0]
        for name, width in WIDTHS.items():
            picture = ROOT / "docs" / "pictures" / name
            draw(browser, address, width, picture)
            print(picture)
        browser.close()


if __name__ == "__main__":
    main()
