"""A data set that is always there: scikit-learn's digits as a folder of folders."""

import pytest
from PIL import Image
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digit_folder(tmp_path_factory):
    """Five digits, 16 pictures of 32 x 32 each, as PNG files."""
    folder = tmp_path_factory.mktemp("digits")
    digits = load_digits()
    for digit in range(5):
        (folder / f"digit{digit}").mkdir()
        for i, image in enumerate(digits.images[digits.target == digit][:16]):
            picture = Image.fromarray((image * 15.9).astype("uint8")).resize((32, 32), Image.Resampling.BICUBIC)
            picture.save(folder / f"digit{digit}" / f"{i:02}.png")
    return folder
