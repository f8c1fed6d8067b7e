"""A browser that opens pages from disk, and equations of these pages."""

import play_pages
import pytest
from browsing import launched


@pytest.fixture(scope="module")
def browser():
    with launched() as started:
        yield started


@pytest.fixture
def opened(browser):
    """A function that opens a page from disk, and allows no complaint."""
    complaints, pages = [], []

    def start(name, width=1280, **options):
        address = (play_pages.PAGES / f"{name}.html").as_uri()
        page = browser.new_page(
            viewport={"width": width, "height": 800}, **options
        )
        pages.append(page)
        page.set_default_timeout(60_000)
        page.on("console", lambda told: complaints.append(told.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url))
        page.goto(address)
        complaints.remove(address)
        return page

    yield start
    for page in pages:
        page.close()
    assert complaints == []
