"""The README's three pictures: draws a folder of pictures, trains on it, and takes screenshots of the pages.

    python docs/figures/make_readme_pictures.py WORK    # WORK: a scratch folder; the PNG files go beside this script

Needs the extras cnn, report and serve, playwright, and the system's chromium.
"""

from __future__ import annotations

import io
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
CLASSES = ("fish", "house", "mug", "tree")
DDLCN = (sys.executable, "-m", "ddlcn")


def draw_shape(kind: str, rng: np.random.Generator) -> Image.Image:
    """One object, 600 x 600, on nothing."""
    layer = Image.new("RGBA", (600, 600))
    pen = ImageDraw.Draw(layer)
    colour, dark, light = (tuple(rng.integers(low, low + 90, 3).tolist()) for low in (80, 10, 160))
    if kind == "fish":
        pen.polygon([(410, 300), (570, 190), (540, 300), (570, 410)], fill=dark)
        pen.ellipse((60, 180, 460, 420), fill=colour)
        for x in range(200, 400, 50):
            pen.arc((x, 220, x + 60, 380), 90, 270, fill=light, width=8)
        pen.ellipse((120, 255, 160, 295), fill=dark, outline=light, width=12)
    elif kind == "house":
        pen.rectangle((120, 260, 480, 520), fill=colour)
        pen.polygon([(80, 270), (300, 80), (520, 270)], fill=dark)
        pen.rectangle((265, 380, 345, 520), fill=dark)
        for x in (160, 380):
            pen.rectangle((x, 310, x + 65, 370), fill=light, outline=dark, width=8)
    elif kind == "mug":
        pen.ellipse((360, 230, 540, 430), outline=colour, width=38)
        pen.rounded_rectangle((120, 150, 430, 510), 40, fill=colour)
        pen.ellipse((120, 110, 430, 200), fill=dark, outline=light, width=10)
        pen.rectangle((120, 300, 430, 340), fill=light)
    else:
        pen.rectangle((265, 380, 335, 560), fill=dark)
        for _ in range(14):
            x, y = rng.normal((300, 240), (85, 75))
            pen.ellipse((x - 85, y - 75, x + 85, y + 75), fill=colour, outline=light, width=5)
    return layer


def draw_picture(kind: str, rng: np.random.Generator) -> Image.Image:
    """An object of any size, place and tilt before a blurred background, 360 x 270."""
    cells = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
    background = cells.resize((360, 270), Image.Resampling.BICUBIC)
    picture = Image.blend(background, Image.new("RGB", (360, 270), tuple(rng.integers(90, 220, 3).tolist())), 0.6)
    side = int(rng.integers(215, 265))
    shape = draw_shape(kind, rng).rotate(rng.uniform(-15, 15), Image.Resampling.BICUBIC).resize((side, side))
    picture.paste(shape, (int(rng.integers(0, 360 - side)), int(rng.integers(0, 270 - side))), shape)
    grain = np.asarray(picture.filter(ImageFilter.GaussianBlur(0.8)), float) + rng.normal(0, 3, (270, 360, 1))
    return Image.fromarray(np.uint8(grain.clip(0, 255)))


def write_folder(work: Path) -> None:
    """20 pictures of each class, photos/<class>/*.jpg, and one more of each, new/*.jpg."""
    rng = np.random.default_rng(0)
    files = [work / "photos" / kind / f"{i:02}.jpg" for kind in CLASSES for i in range(20)]
    for file in [*files, *(work / "new" / f"{kind}.jpg" for kind in CLASSES)]:
        file.parent.mkdir(parents=True, exist_ok=True)
        draw_picture(file.stem if file.stem in CLASSES else file.parent.name, rng).save(file, quality=92)


def take_pictures(work: Path, page: Page, address: str) -> None:
    """The pages, as they are in `work` and at `address`, to PNG files of 256 colours beside this script."""

    def save(name: str, picture: bytes) -> None:
        full = Image.open(io.BytesIO(picture)).convert("RGB")
        full.quantize(256, Image.Quantize.MAXCOVERAGE).save(HERE / f"readme-{name}.png", optimize=True)

    page.goto((work / "why.html").as_uri())
    end = page.locator(".side-1 table").bounding_box()
    clip = {"x": 0, "y": 60, "width": 920, "height": end["y"] + end["height"] - 50}
    save("explanation", page.screenshot(clip=clip, full_page=True))
    page.goto((work / "report.html").as_uri())
    save("report", page.locator("section:has-text('Who wins when') > figure svg").first.screenshot())
    page.goto(address)
    page.set_input_files("#file", work / "new" / "house.jpg")
    page.locator(".tabs[data-ready]").wait_for()
    page.locator(".tabs label").first.click()
    page.locator(".more:not([hidden])").wait_for()
    save("page", page.screenshot(full_page=True))


def main() -> None:
    work = Path(sys.argv[1]).resolve()
    write_folder(work)
    train, explain = "train photos --features cnn --keep-patches", "explain model.ddlcn new/fish.jpg"
    for command in (train, explain, f"report {HERE.parent.resolve() / 'results'}"):
        subprocess.run([*DDLCN, *command.split()], cwd=work, check=True)
    server = subprocess.Popen([*DDLCN, "serve", "model.ddlcn", "--port", "8931"], cwd=work)
    try:
        with sync_playwright() as playwright:
            while server.poll() is None and socket.socket().connect_ex(("127.0.0.1", 8931)):
                time.sleep(0.2)
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            take_pictures(work, browser.new_page(viewport={"width": 920, "height": 900}), "http://127.0.0.1:8931")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
