"""The page in a real browser: no console error, nothing asked of the network, something to be seen."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from ddlcn.report import write_report

from .made_up import make_everything

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


def browse(chromium: str, page: Path, picture: Path, width: int, height: int) -> tuple[list[str], list[str]]:
    """Take a picture of a page; returns console lines that the browser logged, and addresses that the page asked for.

    No host name can be resolved, so nothing leaves the machine. The browser itself asks its maker for updates, on an
    empty page too; those requests have no origin, and are not the page's.
    """
    net_log = picture.parent / "net.json"
    command = [
        *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
        *("--enable-logging=stderr", "--v=0", "--hide-scrollbars", f"--window-size={width},{height}"),
        *(f"--user-data-dir={picture.parent / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"),
        *(f"--log-net-log={net_log}", f"--screenshot={picture}", page.as_uri()),
    ]
    log = subprocess.run(command, capture_output=True, text=True, timeout=120).stderr
    asked = [event.get("params", {}) for event in json.loads(net_log.read_text())["events"]]
    from_page = {params["url"] for params in asked if params.get("initiator", "not an origin") != "not an origin"}
    return [line for line in log.splitlines() if "CONSOLE" in line], sorted(from_page)


@pytest.mark.parametrize("width", [1280, 390])
def test_opens_without_an_error_or_a_request(chromium: str, width: int, tmp_path: Path) -> None:
    write_report(*make_everything(), tmp_path / "report.html")
    console, requests = browse(chromium, tmp_path / "report.html", tmp_path / "page.png", width, 2400)
    assert console == []
    assert requests == []
    with Image.open(tmp_path / "page.png") as picture:
        colours = picture.convert("RGB").getcolors(1 << 24) or []
        assert len(colours) > 50  # text, chips and curves: not an empty page


def test_would_notice_an_error_and_a_request(chromium: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text('<img src="http://example.org/x.png"><script>console.error("it broke")</script>')
    console, requests = browse(chromium, bad, tmp_path / "page.png", 400, 400)
    assert any("it broke" in line for line in console)
    assert requests == ["http://example.org/x.png"]
