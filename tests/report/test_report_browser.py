"""The report in a browser: no errors, no requests, sorting, searching, looking up, widths."""

import pytest

from hcpf.elements import Gamma
from hcpf.evaluate import evaluate_model, split
from hcpf.report import write_report
from report.browsing import CHROMIUM, Browser
from report.reporting import drawn, fitted, unfitted, with_ids

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

NASTY = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>"

SORTED = """
const table = document.getElementById("users-table");
const column = (j) => [...table.tBodies[0].rows].map((row) => row.cells[j].textContent);
const button = (j) => table.tHead.rows[0].cells[j].querySelector("button");
const before = column(1);
button(1).click();
const down = column(1);
button(1).click();
const up = column(1);
const said = table.tHead.rows[0].cells[1].getAttribute("aria-sort");
button(0).click();
return {before, down, up, said, names: column(0)};
"""
SEARCHED = """
const search = document.getElementById("search");
const visible = () => [...document.querySelectorAll("#users-table tbody tr")]
  .filter((row) => row.getClientRects().length).map((row) => row.cells[0].textContent);
const type = (text) => {
  search.value = text;
  search.dispatchEvent(new Event("input"));
  return visible();
};
const all = visible();
const one = type("user 7<");
const said = document.getElementById("found").textContent;
const item = type("ITEM 3<");
const none = type("nobody at all");
return {all, one, said, item, none, again: type("").length};
"""
PICKED = """
const shown = () => document.getElementById("portrait").textContent;
const linked = shown();
document.querySelectorAll("#users-table .pick")[2].click();
const name = document.querySelectorAll("#users-table .pick")[2].textContent;
const portrait = document.getElementById("portrait");
const dot = document.querySelector("svg circle[data-tip]");
const box = dot.getBoundingClientRect();
dot.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: box.x, clientY: box.y}));
const tip = document.getElementById("tip");
const distinctive = document.querySelector(".component .distinctive");
document.querySelector("[data-order=largest]").click();
return {linked, name, shown: shown(), tables: portrait.querySelectorAll("table").length,
  tip: tip.hidden ? null : tip.textContent, wanted: dot.dataset.tip,
  distinctive: distinctive.getClientRects().length, title: document.title,
  images: document.images.length};
"""
WIDE = """
const page = document.querySelector("iframe").contentDocument;
const wide = [...page.querySelectorAll("main *")].filter((node) => {
  if (node.closest(".scroll, svg, caption, details")) return false;
  return node.getBoundingClientRect().right > page.documentElement.clientWidth + 1;
});
const text = page.querySelector("svg text");
const size = parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
return {scroll: page.documentElement.scrollWidth, wide: wide.map((node) => node.outerHTML), size};
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report whose ids and names all try to be code."""
    data = drawn(Gamma(2, 0.05))
    users = [f"user {j}{NASTY}" for j in range(data.n_users)]
    items = [f"item {j}{NASTY}" for j in range(data.n_items)]
    data = with_ids(data, users, items)
    found = evaluate_model(unfitted(element="gamma"), split(data, random_state=0))
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(fitted(data, element="gamma"), path, evaluation=found)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


def test_opens_without_errors_or_requests(browser, report):
    dom = browser.untouched(report)
    assert browser.log == []
    assert browser.requests == ["/page.html"]
    assert "<title>What the model found: a report</title>" in dom
    assert "<img" not in dom


def test_tables_sort(browser, report):
    found = browser.run(report, SORTED)
    assert browser.log == []
    numbers = [int(text) for text in found["before"]]
    assert [int(text) for text in found["down"]] == sorted(numbers, reverse=True)
    assert [int(text) for text in found["up"]] == sorted(numbers)
    assert found["said"] == "ascending"
    assert found["names"][0].startswith("user 0")


def test_search_finds_users_and_items(browser, report):
    found = browser.run(report, SEARCHED)
    assert browser.log == []
    assert len(found["all"]) == found["again"] == 24
    assert found["one"] == [f"user 7{NASTY}"]
    assert found["said"] == "1 of 24 users"
    assert 0 < len(found["item"]) <= 24
    assert found["none"] == []


def test_users_components_and_tooltips(browser, report):
    fragment = "#user=user%204" + "".join(f"%{ord(c):02x}" for c in NASTY)
    found = browser.run(report, PICKED, fragment=fragment)
    assert browser.log == []
    assert found["linked"].startswith(f"User user 4{NASTY}")
    assert found["shown"].startswith(f"User {found['name']}")
    assert found["tables"] == 2
    assert found["tip"] == found["wanted"]
    assert found["distinctive"] == 0
    assert found["title"] == "What the model found: a report"
    assert found["images"] == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_fits_the_width(browser, report, width):
    found = browser.run(report, WIDE, width=width)
    assert found["wide"] == []
    assert found["scroll"] <= width
    assert found["size"] > 10
