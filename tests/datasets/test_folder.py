"""A folder of pictures: what is listed, in which order, and what is said about the rest."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from PIL import Image

from ddlcn.datasets import load_folder
from ddlcn.images import ImageReadError, formats


def save(path, shade=100):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((20, 30, 3), shade, np.uint8)).save(path)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for name in ("dog/b.jpg", "dog/a.PNG", "cat/2.JPEG", "cat/1.bmp", "cat/more/deep/0.tif", "zebra/x.webp"):
        save(folder / name)
    save(folder / "cat/.hidden.jpg")
    save(folder / ".cache/1.jpg")
    save(folder / "cat/.thumbs/1.jpg")
    save(folder / "__MACOSX/1.jpg")
    save(folder / "loose.jpg")
    (folder / "cat/notes.txt").write_text("not a picture")
    (folder / "cat/Thumbs.db").write_bytes(b"\0")
    return folder


def test_lists_images_by_class_in_a_fixed_order(photos):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = load_folder(photos)
    names = [path.relative_to(photos).as_posix() for path in data.paths]
    assert names == [
        "cat/1.bmp", "cat/2.JPEG", "cat/more/deep/0.tif", "dog/a.PNG", "dog/b.jpg", "zebra/x.webp"
    ]  # fmt: skip
    assert data.labels.tolist() == ["cat"] * 3 + ["dog"] * 2 + ["zebra"]
    assert data.labels.dtype.kind == "U"
    assert data.class_names == ["cat", "dog", "zebra"]
    assert data.skipped == []
    assert len(data) == 6
    assert "6 images, 3 classes" in repr(data)


def test_path_as_string_and_threads_give_the_same(photos):
    base = load_folder(photos)
    for other in (load_folder(str(photos)), load_folder(photos, n_jobs=1), load_folder(photos, n_jobs=3)):
        assert other.paths == base.paths
        assert other.labels.tolist() == base.labels.tolist()


def test_an_unreadable_file_is_named_or_skipped(photos):
    noise = np.random.default_rng(0).integers(0, 256, (100, 100, 3), dtype=np.uint8)
    Image.fromarray(noise).save(photos / "dog/cut.jpg")
    content = (photos / "dog/cut.jpg").read_bytes()
    (photos / "dog/cut.jpg").write_bytes(content[: len(content) * 9 // 10])
    (photos / "zebra/fake.png").write_text("hello")
    with pytest.raises(ImageReadError, match="cut.jpg.*truncated"):
        load_folder(photos)
    with pytest.warns(UserWarning, match="skipped 2 of 8 files.*cut.jpg") as caught:
        data = load_folder(photos, on_error="skip")
    assert len(caught) == 1
    assert [path.name for path, _ in data.skipped] == ["cut.jpg", "fake.png"]
    assert "truncated" in data.skipped[0][1]
    assert "not an image" in data.skipped[1][1]
    assert len(data.paths) == len(data.labels) == 6


def test_a_class_without_readable_images_is_left_out_with_a_warning(photos):
    (photos / "empty").mkdir()
    with pytest.warns(UserWarning, match="left out 1 class folders.*'empty'"):
        data = load_folder(photos)
    assert data.class_names == ["cat", "dog", "zebra"]
    assert data.skipped == [(photos / "empty", "class folder 'empty' holds no image that can be read")]


@pytest.mark.parametrize(("name", "why"), [("1.HEIC", r"pip install 'ddlcn\[heic\]'"), ("1.nef", "camera's raw file")])
def test_a_picture_that_nothing_reads_is_reported(photos, monkeypatch, name, why):
    monkeypatch.setattr(formats, "has_heif", lambda: False)
    (photos / "dog" / name).write_bytes(b"\0\0\0\x18ftypheic" + bytes(100))
    with pytest.raises(ImageReadError, match=f"{name}.*{why}"):
        load_folder(photos)
    with pytest.warns(UserWarning, match="skipped 1 of 7"):
        assert len(load_folder(photos, on_error="skip")) == 6


def test_linked_class_folder_is_followed(photos, tmp_path):
    save(tmp_path / "elsewhere/1.png")
    (photos / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert load_folder(photos).labels.tolist().count("linked") == 1


def test_clear_errors(tmp_path):
    with pytest.raises(ValueError, match="'.*nowhere' does not exist"):
        load_folder(tmp_path / "nowhere")
    save(tmp_path / "flat/1.jpg")
    with pytest.raises(ValueError, match="is a file"):
        load_folder(tmp_path / "flat/1.jpg")
    with pytest.raises(ValueError, match="no class folders.*flat/cat/1.jpg"):
        load_folder(tmp_path / "flat")
    (tmp_path / "bare/cat").mkdir(parents=True)
    with pytest.raises(ValueError, match="no image in any class folder"):
        load_folder(tmp_path / "bare")
    (tmp_path / "bare/cat/1.jpg").write_text("hello")
    with pytest.raises(ValueError, match="none of its 1 images can be read"):
        load_folder(tmp_path / "bare", on_error="skip")
    with pytest.raises(ValueError, match="on_error must be one of 'raise', 'skip'"):
        load_folder(tmp_path / "bare", on_error="ignore")
