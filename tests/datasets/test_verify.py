"""What is damaged is named, what is absent is listed, what is whole passes."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ddlcn import cli
from ddlcn.datasets import load_dataset
from ddlcn.datasets.content import content_digests
from ddlcn.datasets.verify import is_present, read_sums, verify
from tests.datasets import packing


def write_sums(root: Path, *files: str) -> None:
    lines = [f"{hashlib.sha256((root / file).read_bytes()).hexdigest()}  {file}\n" for file in files]
    (root / "SHA256SUMS").write_text("".join(lines))


def flip_a_byte(path: Path, position: float = 0.5) -> None:
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Yale B, AR and Caltech 101, made up and whole, with SHA256SUMS; the others are absent."""
    packing.write_zip(tmp_path / "yaleb/CroppedYale.zip", packing.yaleb_files())
    packing.write_folder(tmp_path / "ar", packing.ar_files())
    packing.write_tar(tmp_path / "caltech101/101_ObjectCategories.tar.gz", packing.caltech101_files())
    (tmp_path / "README.md").write_text("about\n")
    for name, n_classes, n_images in (("yaleb", 2, 24), ("ar", 4, 12), ("caltech101", 3, 9)):
        packing.expect(monkeypatch, name, n_classes, n_images)
        if name != "ar":  # no checksum of the bitmaps is known
            known = content_digests(load_dataset(name, tmp_path))
            packing.expect(monkeypatch, name, n_classes, n_images, content=known)
    write_sums(tmp_path, "yaleb/CroppedYale.zip", "caltech101/101_ObjectCategories.tar.gz", "README.md")
    monkeypatch.setenv("DDLCN_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(cli.app, ["data", *arguments])


def test_whole_sets_pass_and_absent_ones_are_listed(root, run):
    result = run("verify")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "yaleb ok: 24 images, 2 classes, checksums match (1 file in SHA256SUMS and content)",
        "ar ok: 12 images, 4 classes, every image decodes, no checksum is known",
        "caltech101 ok: 9 images, 3 classes, checksums match (1 file in SHA256SUMS and content)",
        "caltech256 absent",
        "mnist absent",
        "omniglot absent",
        "omniglot-background absent",
        "other files ok: 1 file match SHA256SUMS",
    ]
    assert run("verify", "caltech256").exit_code == 0
    assert run("verify", "yaleb-excluded", "yaleb").output.count("\n") == 1


@pytest.mark.parametrize("file", ["yaleb/CroppedYale.zip", "caltech101/101_ObjectCategories.tar.gz", "README.md"])
@pytest.mark.parametrize("position", [0, 0.3, 0.999])
def test_a_changed_byte_names_the_file(root, run, file, position):
    flip_a_byte(root / file, position)
    result = run("verify")
    assert result.exit_code == 1
    assert f"PROBLEM: {file}: bytes differ from SHA256SUMS" in result.output
    assert result.output.count("PROBLEM") == 1


def test_without_sums_the_content_tells(root, run):
    (root / "SHA256SUMS").unlink()
    assert run("verify").exit_code == 0
    # One image replaced by another that is as readable, in an archive that is as whole.
    files = packing.yaleb_files()
    files["CroppedYale/yaleB02/yaleB02_P00A+000E+00.pgm"] = packing.picture(77, "PPM")
    packing.write_zip(root / "yaleb/CroppedYale.zip", files)
    files = packing.caltech101_files()
    files["101_ObjectCategories/ant/image_0002.jpg"] = packing.picture(77, size=(50, 50))
    packing.write_tar(root / "caltech101/101_ObjectCategories.tar.gz", files)
    result = run("verify")
    assert result.exit_code == 1
    assert "yaleb PROBLEM: yaleb: the content of 'images' is not that of the distribution" in result.output
    assert "caltech101 PROBLEM: caltech101: the content of 'names and sizes' is not" in result.output


def test_damaged_images_are_named(root, run):
    bitmaps = sorted((root / "ar").rglob("*.bmp"))
    for bitmap in bitmaps[3:5]:
        bitmap.write_bytes(bitmap.read_bytes()[:90])
    result = run("verify", "ar")
    assert result.exit_code == 1
    assert "damaged image M-002-01" in result.output
    assert "and 1 more" in result.output


def test_a_listed_file_that_is_missing_is_named(root, run):
    (root / "yaleb/more.txt").write_text("more")
    write_sums(root, "yaleb/CroppedYale.zip", "yaleb/more.txt")
    (root / "yaleb/more.txt").unlink()
    result = run("verify", "yaleb")
    assert result.exit_code == 1
    assert "yaleb/more.txt: listed in SHA256SUMS but missing" in result.output
    shutil.rmtree(root / "yaleb")
    assert run("verify", "yaleb").output == "yaleb absent\n"


def test_an_unpacked_set_needs_no_archive(root, run):
    (root / "yaleb/CroppedYale.zip").unlink()
    packing.write_folder(root / "yaleb", packing.yaleb_files())
    result = run("verify", "yaleb")
    assert result.output == "yaleb ok: 24 images, 2 classes, checksums match (content)\n"


def test_an_incomplete_set_is_a_problem_not_absent(root, run):
    packing.write_mnist(root)
    (root / "mnist/train-labels-idx1-ubyte.gz").unlink()
    result = run("verify", "mnist")
    assert result.exit_code == 1
    assert "mnist PROBLEM: mnist/train-labels-idx1-ubyte.gz is not under" in result.output


def test_each_file_of_mnist_has_its_checksum(root, run, monkeypatch):
    packing.write_mnist(root)
    packing.expect(monkeypatch, "mnist", 10, 40)
    digests = content_digests(load_dataset("mnist", root))
    packing.expect(monkeypatch, "mnist", 10, 40, content=digests)
    plain = root / "plain"
    packing.write_mnist(plain, suffix="")
    for file, digest in digests.items():
        assert hashlib.sha256((plain / "mnist" / file).read_bytes()).hexdigest() == digest
    assert run("verify", "mnist").exit_code == 0
    packing.write_idx(root / "mnist/t10k-labels-idx1-ubyte.gz", np.zeros(10, np.uint8))
    assert "content of 't10k-labels-idx1-ubyte' is not that" in run("verify", "mnist").output


@pytest.fixture
def omniglot(root, monkeypatch) -> Path:
    """The folder of made-up runs and background sets, with a SHA256SUMS of its own."""
    packing.write_omniglot(root, side=28)
    packing.write_background(root)
    for name, n_classes, n_images in (("omniglot", 8, 16), ("omniglot-background", 9, 18)):
        packing.expect(monkeypatch, name, n_classes, n_images)
        known = content_digests(load_dataset(name, root))
        packing.expect(monkeypatch, name, n_classes, n_images, content=known)
    write_sums(root / "omniglot", *(path.name for path in (root / "omniglot").iterdir()))
    return root / "omniglot"


def test_two_sets_in_one_folder_are_both_checked(omniglot, run):
    whole = [
        "omniglot ok: 16 images, 8 classes, checksums match (1 file in SHA256SUMS and content)",
        "omniglot-background ok: 18 images, 9 classes, checksums match (2 files in SHA256SUMS and content)",
    ]
    for name in ("omniglot", "omniglot-background"):
        assert run("verify", name).output.splitlines() == whole
    assert set(whole) < set(run("verify").output.splitlines())
    flip_a_byte(omniglot / "images_background_small2.zip")
    first, second = run("verify", "omniglot").output.splitlines()
    assert first == whole[0]
    assert "PROBLEM: omniglot/images_background_small2.zip: bytes differ from SHA256SUMS" in second


def test_one_of_two_sets_in_a_folder_may_be_absent(omniglot, run):
    (omniglot / "all_runs.zip").unlink()
    assert run("verify", "omniglot").output.splitlines()[0] == "omniglot absent"
    packing.write_omniglot(omniglot.parent, side=28)
    for part in (1, 2):
        (omniglot / f"images_background_small{part}.zip").unlink()
    result = run("verify", "omniglot")
    assert result.output.splitlines()[1] == "omniglot-background absent"
    assert result.exit_code == 0


def test_other_labels_of_the_runs_are_other_content(omniglot, run):
    files = packing.omniglot_files(side=28)
    labels = files["run02/class_labels.txt"].replace(b"class01", b"class00").replace(b"class02", b"class01")
    files["run02/class_labels.txt"] = labels.replace(b"class00", b"class02")
    (omniglot / "SHA256SUMS").unlink()
    packing.write_zip(omniglot / "all_runs.zip", files)
    result = run("verify", "omniglot")
    assert result.exit_code == 1
    assert "omniglot PROBLEM: omniglot: the content of 'images' is not that of the distribution" in result.output


def test_sums_of_every_style(tmp_path):
    one, two, three = ("a" * 64, "b" * 64, "C" * 64)
    path = tmp_path / "SHA256SUMS"
    path.write_text(f"# made by hand\n{one}  x/a b.zip\n{two} *y.zip\n\n{three}  ./z/z.zip\n")
    assert read_sums(path) == {"x/a b.zip": one, "y.zip": two, "z/z.zip": three.lower()}
    path.write_text(f"{one}  x.zip\nnonsense\n")
    with pytest.raises(ValueError, match="SHA256SUMS, line 2"):
        read_sums(path)
    assert read_sums(tmp_path / "none") == {}


def test_unknown_names_and_an_empty_root(tmp_path, run, monkeypatch):
    monkeypatch.setenv("DDLCN_DATA", str(tmp_path / "nowhere"))
    result = run("verify")
    assert result.exit_code == 0
    assert result.output.count("absent") == 7
    assert "unknown data set 'minst'" in str(run("verify", "minst").exception)


def test_list_says_what_is_here_and_whose_it_is(root, run):
    output = " ".join(run("list").output.split())
    for words in (
        "Georghiades",
        "CC BY 4.0; cite Griffin et al. 2007",
        "29,780",
        "arccos(cos A cos E)",
        str(root)[:30],
        "by request",
    ):
        assert words in output
    assert "https://data.caltech.edu/records/nyy15-4j048" in output
    rows = [line.split("│") for line in run("list").output.splitlines() if line.startswith("│")]
    here = {row[1].strip(): row[5].strip() for row in rows}
    expected = dict.fromkeys(("yaleb", "yaleb-excluded", "yaleb-lit", "ar", "caltech101", "caltech102"), "yes")
    assert here == expected | dict.fromkeys(("caltech256", "mnist", "omniglot", "omniglot-background"), "no")


@pytest.mark.data
@pytest.mark.parametrize("name", ["ar", "mnist", "yaleb", "caltech101"])
def test_the_real_sets_are_whole(data_root, name):
    (finding,) = verify([name], data_root)
    assert finding.state == "ok"
    assert finding.text.endswith("in SHA256SUMS and content)")


@pytest.mark.data
def test_the_real_omniglot_is_whole(data_root):
    findings = list(verify(["omniglot"], data_root))
    assert [(finding.name, finding.state) for finding in findings] == [
        ("omniglot", "ok"),
        ("omniglot-background", "ok"),
    ]
    assert all(finding.text.endswith("in SHA256SUMS and content)") for finding in findings)


@pytest.mark.data
def test_a_changed_byte_in_a_copy_of_the_real_sets(data_root, tmp_path, run, monkeypatch):
    for name in ("ar", "mnist"):
        shutil.copytree(data_root / name, tmp_path / name)
        (tmp_path / name).chmod(0o755)
    shutil.copy(data_root / "SHA256SUMS", tmp_path)
    monkeypatch.setenv("DDLCN_DATA", str(tmp_path))
    assert run("verify").exit_code == 0
    for file in ("ar/ar_42x30_100x26.npz", "mnist/t10k-images-idx3-ubyte.gz"):
        flip_a_byte(tmp_path / file)
        result = run("verify")
        assert result.exit_code == 1
        assert f"{file}: bytes differ from SHA256SUMS" in result.output
        assert result.output.count("PROBLEM") == 1
        flip_a_byte(tmp_path / file)
    (tmp_path / "SHA256SUMS").unlink()
    flip_a_byte(tmp_path / "ar/ar_42x30_100x26.npz")
    assert "ar PROBLEM" in run("verify", "ar").output


@pytest.mark.data
def test_the_real_sets_have_their_known_shape(data_root):
    ar, mnist = load_dataset("ar", data_root), load_dataset("mnist", data_root)
    assert (ar.images.shape, ar.images.dtype) == ((2600, 42, 30), np.uint8)
    assert (np.bincount(ar.labels) == 26).all()
    assert (mnist.images.shape, int(mnist.is_test.sum())) == ((70000, 28, 28), 10000)
    whole, excluded = load_dataset("yaleb", data_root), load_dataset("yaleb-excluded", data_root)
    assert (len(whole), len(excluded)) == (2414, 2034)
    assert set(excluded.image_names) < set(whole.image_names)
    lit = load_dataset("yaleb-lit", data_root)
    for part in (excluded, lit):
        assert (np.bincount(whole.labels) - np.bincount(part.labels) == 10).all()
    assert 0 < len(set(excluded.image_names) & set(lit.image_names)) < len(lit)
    assert is_present(packing.CATALOGUE["caltech101"], data_root)
    objects, background = load_dataset("caltech101", data_root), load_dataset("caltech102", data_root)
    assert (len(objects), len(background)) == (8677, 9144)
    assert set(background.class_names) - set(objects.class_names) == {"BACKGROUND_Google"}
    assert set(objects.image_names) < set(background.image_names)
