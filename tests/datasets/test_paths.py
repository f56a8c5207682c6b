"""The ways to name images."""

from __future__ import annotations

import pytest

from ddlcn.datasets.paths import find_images


def test_files_folders_patterns_and_lists(digit_folder):
    file = digit_folder / "digit3" / "05.png"
    assert list(find_images([str(file)])) == [file]
    inside = sorted((digit_folder / "digit2").iterdir())
    assert list(find_images([str(digit_folder / "digit2")])) == inside
    assert list(find_images([str(digit_folder / "digit2" / "*.png")])) == inside
    assert len(list(find_images([str(digit_folder)]))) == 80
    lines = [f"{file}\n", "\n", str(inside[0])]
    assert list(find_images([str(inside[1]), "-"], lines)) == [inside[1], file, inside[0]]


def test_what_names_nothing_is_said_before_any_image_is_read(tmp_path, digit_folder):
    with pytest.raises(FileNotFoundError, match="no image"):
        find_images([str(tmp_path)])
    with pytest.raises(FileNotFoundError, match=r"absent\*"):
        find_images([str(digit_folder), str(tmp_path / "absent*")])


def test_a_file_of_another_kind_is_left_to_the_reader(tmp_path):
    """Named by hand it is meant; that it is no image is found out when it is read."""
    (tmp_path / "notes.txt").write_text("hello")
    assert list(find_images([str(tmp_path / "notes.txt")])) == [tmp_path / "notes.txt"]
