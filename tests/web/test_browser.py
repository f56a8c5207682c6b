"""The page in a real browser, as a person uses it: drop, read, look why, drop rubbish."""

from __future__ import annotations

import base64

import pytest

from ..conftest import run_server

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api")

# A drop is an event with files in it; made in the page, since there is no mouse that could carry one.
_DROP = """async ([name, content]) => {
  const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name));
  const event = new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
  document.getElementById("drop").dispatchEvent(event);
}"""


@pytest.fixture(scope="module")
def server(digit_model):
    with run_server(digit_model) as (address, _):
        yield address


@pytest.fixture
def page(server, browser):
    """The page, with everything that the browser complains about or asks of another host."""
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.complaints, page.strangers = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((server, "data:", "blob:")) else page.strangers.append(r.url))
    page.goto(server)
    yield page
    assert page.complaints == []
    assert page.strangers == []
    page.close()


def drop(page, path):
    page.evaluate(_DROP, [path.name, base64.b64encode(path.read_bytes()).decode()])


def test_drop_a_picture_and_look_why(page, digit_folder):
    drop(page, digit_folder / "digit2" / "12.png")
    card = page.locator(".card")
    card.locator(".label").wait_for()
    assert card.locator(".label").inner_text() == "digit2"
    assert card.locator(".guesses li").count() == 4
    card.locator(".tabs[data-ready]").wait_for()
    plain = card.locator(".shown").get_attribute("src")
    card.get_by_text("why digit2", exact=True).click()
    winner = card.locator(".shown").get_attribute("src")
    assert winner.startswith("data:image/jpeg")
    assert winner != plain
    runner_up = card.locator(".tabs label").nth(1)
    assert runner_up.inner_text().startswith("why digit")
    runner_up.click()
    assert card.locator(".shown").get_attribute("src") != winner
    assert runner_up.inner_text().removeprefix("why ").removesuffix("?") in card.locator(".sum").inner_text()
    assert card.locator("tbody tr").count() == 6


def test_rubbish_gets_a_friendly_word(page, tmp_path, digit_folder):
    (tmp_path / "page.jpg").write_text("<html>not a picture</html>")
    drop(page, tmp_path / "page.jpg")
    page.locator(".failed").wait_for()
    assert "cannot be read" in page.locator(".failed .label").inner_text()
    assert "not an image" in page.locator(".failed .error").inner_text()
    page.set_input_files("#file", [digit_folder / "digit1" / "12.png", digit_folder / "digit0" / "12.png"])
    page.get_by_text("Done: 2 pictures.").wait_for()
    assert page.locator(".card:not(.failed) .label").all_inner_texts() == ["digit0", "digit1"]  # the newest first


def test_by_keyboard_alone(page, digit_folder):
    drop(page, digit_folder / "digit3" / "12.png")
    page.locator(".tabs[data-ready]").wait_for()
    assert page.evaluate("document.activeElement.className") == "card"  # the answer is where the reader is
    page.keyboard.press("Tab")  # to the group of heat maps, whose last is chosen
    page.keyboard.press("ArrowLeft")
    page.locator(".more:not([hidden])").wait_for()
    assert page.locator(".shown").get_attribute("alt").startswith("Heat map")


def test_narrow_and_dark(server, browser):
    page = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme="dark")
    page.goto(server)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    page.close()
