"""What the README says, a stranger can do: its Python example runs on a real folder of pictures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def write_photos(folder: Path) -> None:
    """scikit-learn's digits 0, 1, 2 as PNG files in one folder per class, and one more beside them."""
    digits = load_digits()
    for kind in range(3):
        (folder / "photos" / f"digit{kind}").mkdir(parents=True)
        for i in np.flatnonzero(digits.target == kind)[:12]:
            picture = Image.fromarray(np.uint8(digits.images[i] * 15.9)).resize((48, 48))
            picture.save(folder / "photos" / f"digit{kind}" / f"{i}.png")
    Image.fromarray(np.uint8(digits.images[500] * 15.9)).resize((48, 48)).save(folder / "new.jpg")
    (folder / "photos" / "digit0" / "broken.jpg").write_bytes(b"not a picture")


def test_the_example_on_a_folder(tmp_path, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    write_photos(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    assert (tmp_path / "model.ddlcn").exists()
    assert "digit" in capsys.readouterr().out


def test_the_commands_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake (demo|test|bench|\w+)\b", README))
    assert {"demo", "test", "bench"} <= named <= targets


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target
