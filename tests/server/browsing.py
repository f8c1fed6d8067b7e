"""A browser for the tests of the page, and what can be seen in it."""

import contextlib
import importlib.util
import os
import pathlib
import re
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# What a screen reader calls an element. Its own text names a button alone.
NAME = """e => {
  const label = e.labels?.[0]?.textContent.replace(e.textContent, "").trim();
  return e.ariaLabel || label || (e.localName === "button" && e.textContent);
}"""
# Texts that are hard to read: WCAG 2's contrast is below 4.5, or below 3 for
# large letters. Colours are laid over those below them.
PALE = """() => {
  const canvas = document.createElement("canvas").getContext("2d",
    { willReadFrequently: true });
  const over = (colors) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const color of colors) {
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((v) => v / 255).map((v) =>
      v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) =>
      child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.checkVisibility({ visibilityProperty: true }) ||
        node.disabled || node.closest("svg, .aloud, option")) {
      continue;
    }
    const grounds = [];
    for (let at = node; at; at = at.parentElement) {
      grounds.unshift(getComputedStyle(at).backgroundColor);
    }
    const style = getComputedStyle(node);
    const ground = luminance(over(["white", ...grounds]));
    const text = luminance(over(["white", ...grounds, style.color]));
    const [dim, bright] = [ground, text].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dim + 0.05);
    const least = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if (ratio < least) {
      found.push(`${node.className}: ${node.textContent}: ${ratio}`);
    }
  }
  return found;
}"""
# What WCAG asks of the tree: names, unique ids, headings in their order,
# labels that are allowed, lists of items, what scrolls by keyboard.
FAULTS = """() => {
  const found = [];
  const shown = (node) => node.checkVisibility({ visibilityProperty: true });
  const all = [...document.querySelectorAll("body *")].filter(shown);
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) =>
    found.push(`two nodes with the id ${id}`));
  let level = 1;
  for (const node of all) {
    const name = node.localName;
    if (/^h[1-6]$/.test(name)) {
      const next = Number(name[1]);
      if (next > level + 1) {
        found.push(`h${next} after h${level}: ${node.textContent}`);
      }
      if (!node.textContent.trim()) {
        found.push(`an empty ${name}`);
      }
      level = next;
    }
    const lists = { li: ["ol", "ul"], dt: ["dl"], dd: ["dl"] }[name];
    if (lists && !lists.includes(node.parentElement.localName)) {
      found.push(`${name} in ${node.parentElement.localName}`);
    }
    const isGeneric = ["div", "span", "p", "i"].includes(name);
    if (isGeneric && node.ariaLabel && !node.role) {
      found.push(`a label on a ${name} without a role`);
    }
    if (node.closest("button") !== node && node.closest("button") &&
        node.matches("a, button, input, select, textarea, [tabindex]")) {
      found.push(`${name} in a button`);
    }
    for (const key of ["aria-labelledby", "aria-describedby", "for"]) {
      const id = node.getAttribute(key);
      if (id && !document.getElementById(id)) {
        found.push(`${key} names ${id}`);
      }
    }
    const scrolls = /auto|scroll/.test(getComputedStyle(node).overflowX) &&
      node.scrollWidth > node.clientWidth;
    if (scrolls && node.tabIndex < 0 &&
        !node.querySelector("button, [tabindex]")) {
      found.push(`${node.className} scrolls, and no key reaches it`);
    }
  }
  return found;
}"""


def sync_api():
    """The module that drives a browser."""
    return pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )


@contextlib.contextmanager
def launched():
    """A browser without a window."""
    driver = sync_api()
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with driver.sync_playwright() as play:
        # As root, as in a container, Chromium has no sandbox.
        browser = play.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        with contextlib.closing(browser):
            yield browser


@contextlib.contextmanager
def opening(browser, address):
    """A function of a model and a width: the page, without a complaint."""
    complaints = []

    def heard(text):
        # Chromium says so of each answer that is an error.
        if not text.startswith("Failed to load resource: the server responded"):
            complaints.append(text)

    with contextlib.ExitStack() as stack:

        def start(model="phrases_en_de", width=1280, **options):
            page = browser.new_page(
                viewport={"width": width, "height": 800}, **options
            )
            stack.enter_context(contextlib.closing(page))
            page.set_default_timeout(60_000)
            page.on("console", lambda told: heard(told.text))
            page.on("pageerror", lambda error: heard(str(error)))
            page.on(
                "request",
                lambda request: (
                    request.url.startswith(address) or heard(request.url)
                ),
            )
            page.goto(f"{address}#model={model}")
            page.wait_for_selector("#desk .card")
            return page

        yield start
    assert complaints == []


def choose(page, **values):
    """Sets controls by their ids, as somebody who moves them."""
    for name, value in values.items():
        node = page.locator(f"#{name}")
        if isinstance(value, bool):
            node.set_checked(value)
        else:
            node.evaluate(
                """(node, value) => {
                  node.value = value;
                  node.dispatchEvent(new Event("input"));
                }""",
                str(value),
            )


def alter(page, change):
    """Changes what `inspect` answers, by a function of its outputs."""

    def answer(route):
        response = route.fetch()
        body = response.json()
        if "inspect" in route.request.post_data:
            change(body["outputs"])
        route.fulfill(response=response, json=body)

    page.route("**/*:predict", answer)


def axe():
    """The source of axe-core, which judges whether a page can be read by all.

    KERAS_ATTENTION_AXE names a file of another version.
    """
    path = os.environ.get("KERAS_ATTENTION_AXE")
    if path is None:
        package = importlib.util.find_spec("axe_playwright_python")
        if package is None:
            pytest.skip("axe-playwright-python, which has axe, is missing")
        path = pathlib.Path(package.origin).with_name("axe.min.js")
    return pathlib.Path(path).read_text("utf-8")


def violations(page):
    """What axe finds in a page: the rule, what it says, and where."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(axe())
    found = page.evaluate("axe.run().then(({ violations }) => violations)")
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:200]}"
        for rule in found
        for node in rule["nodes"]
    ]


def wait_for_text(page, selector, text):
    """Waits until the page has a text."""
    # The page's policy refuses conditions given as text.
    element = page.locator(selector)
    sync_api().expect(element).to_have_text(text, timeout=60_000)


def texts(page, selector):
    """The texts of all nodes that a selector finds."""
    return page.locator(selector).all_text_contents()


def quoted(text):
    """A text in quotes, which keeps its direction to itself."""
    return f"\u2068“{text}”\u2069"


def usable(choices):
    """Those of a step's tokens that a text can have, or END."""
    return [
        one for one in choices if one == "[END]" or not re.match(r"\[|<0x", one)
    ]
