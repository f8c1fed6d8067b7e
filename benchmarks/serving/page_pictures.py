"""The pictures of the server's page in the documentation.

    pip install playwright
    python benchmarks/serving/page_pictures.py

serves the phrases, and opens the page in a Chromium that is installed. It
writes the pictures of `docs/serving.md` and of `docs/guides/look_inside.md` to
`docs/pictures/`. Look at them.
"""

import pathlib
import shutil
import sys
import tempfile

from PIL import Image, ImageOps
from playwright import sync_api
from servers import PHRASES, ROOT, ours

DATE, NUMBER = "Monday, March 3, 2025", "twenty-one"
WORDS = ".rows.large button"
# Whole pages: name of a picture -> width in pixels, colours.
WHOLE = {
    "page": (1280, "light"),
    "page_dark": (1280, "dark"),
    "page_768": (768, "light"),
    "page_360": (360, "light"),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def opened(browser, address, text, scale=2, **options):
    """A page that shows the inside of a translation."""
    options = {"viewport": {"width": 700, "height": 800}} | options
    page = browser.new_page(device_scale_factor=scale, **options)
    page.goto(address)
    page.fill("#text", text)
    # The first answer takes long.
    page.wait_for_selector(f"{WORDS}.shaded", timeout=120_000)
    return page


def whole_pages(browser, address):
    """Yields the name and the page of each width and colours."""
    for name, (width, scheme) in WHOLE.items():
        options = {"viewport": {"width": width, "height": 800}}
        options |= {"color_scheme": scheme, "scale": 1}
        page = opened(browser, address, DATE, **options)
        page.locator(".rows.large").get_by_text("März").hover()
        yield name, page, "html"


def parts(browser, address):
    """Yields the name and the page of each part, and where it is there."""
    page = opened(browser, address, DATE)
    page.get_by_role("button", name="cross, layer 2, head 2").click()
    page.get_by_role("button", name="Lines").click()
    page.mouse.move(0, 0)
    yield "page_lines", page, "#opened"
    page = opened(browser, address, DATE)
    page.locator(WORDS).nth(1).click()
    yield "page_choices", page, "[aria-labelledby=translation-title]"
    page = opened(browser, address, NUMBER)
    yield "page_beam", page, "#beam"


def draw(page, part, path):
    """Writes a picture of a part of a page, in 128 colours."""
    page.wait_for_timeout(1000)  # Until no colour changes any more.
    page.locator(part).screenshot(path=path)
    page.close()
    with Image.open(path) as file:
        picture = file.convert("RGB")
    border = 0 if part == "html" else 24
    picture = ImageOps.expand(picture, border, picture.getpixel((0, 0)))
    picture.quantize(128).save(path, optimize=True)


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
        for views in (parts, whole_pages):
            for name, page, part in views(browser, address):
                picture = ROOT / "docs" / "pictures" / f"{name}.png"
                draw(page, part, picture)
                print(picture, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
