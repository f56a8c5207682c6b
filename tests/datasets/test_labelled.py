"""A folder of folders, or a table: the same pictures."""

from __future__ import annotations

import pytest

from ddlcn.datasets.labelled import load_labelled


@pytest.fixture
def table(digit_folder, tmp_path):
    """Every second picture of two digits, in a table elsewhere."""
    paths = [*sorted((digit_folder / "digit0").iterdir())[::2], *sorted((digit_folder / "digit1").iterdir())[::2]]
    (tmp_path / "table.csv").write_text("".join(f"{path},{path.parent.name}\n" for path in paths))
    return tmp_path / "table.csv", paths


def test_a_table_and_a_folder(table, digit_folder):
    path, pictures = table
    data = load_labelled(path)
    assert data.paths == pictures
    assert data.labels.tolist() == [picture.parent.name for picture in pictures]
    assert len(load_labelled(digit_folder)) == 80


def test_headings_and_columns_in_any_order(table):
    path, pictures = table
    rows = path.read_text()
    for heading in ("path,label", "file,what", "Path, Label"):
        path.write_text(f"{heading}\n{rows}")
        assert load_labelled(path).paths == pictures
    path.write_text("n,label,path\n" + "".join(f"{i},{p.parent.name},{p}\n" for i, p in enumerate(pictures)))
    assert load_labelled(path).paths == pictures


def test_paths_are_relative_to_the_table(digit_folder):
    table = digit_folder.parent / "relative.csv"
    table.write_text(f"{digit_folder.name}/digit0/00.png,zero\n{digit_folder.name}/digit1/00.png,one\n")
    assert load_labelled(table).labels.tolist() == ["one", "zero"]


def test_what_cannot_be_read_is_listed(table, tmp_path):
    path, pictures = table
    with path.open("a") as file:
        file.write("absent.png,digit0\n")
    data = load_labelled(path)
    assert len(data) == len(pictures)
    assert data.skipped[0][0] == tmp_path / "absent.png"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"a.png\nb.png\n", "has no label"),
        (b"x.png,a\ny.png,b\n", "none of"),
        (b"\xff\xfe\x00", "not a CSV"),
    ],
)
def test_other_tables_are_refused_in_a_sentence(tmp_path, content, complaint):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=complaint):
        load_labelled(tmp_path / "t.csv")
