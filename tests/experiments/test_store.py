"""The results file: rows in, the same rows out, and nothing lost."""

import gzip
import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row, Store, read_rows, write_lines


def make_row(seed=0, **changes):
    return Row(Settings("ar", 20, **changes), seed, 0.5, 0.25, [[0, 1, 3]], [4, 4], ["a", "b"], finished="today")


def test_rows_come_back(tmp_path):
    store = Store(tmp_path / "deep" / "runs.sqlite")
    rows = [make_row(0), make_row(1), make_row(0, n_neighbors=None)]
    for row in rows:
        store.add(row)
    store.close()
    found = read_rows(tmp_path / "deep" / "runs.sqlite")
    assert sorted(found, key=Row.to_json) == sorted(rows, key=Row.to_json)


def test_a_finished_run_is_known_and_stays_as_it_was(tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    assert not store.is_finished(make_row().settings, 0)
    store.add(make_row())
    store.add(Row(make_row().settings, 0, 0.9))
    assert store.is_finished(make_row().settings, 0)
    assert not store.is_finished(make_row().settings, 1)
    assert [row.accuracy for row in store.rows()] == [0.5]


def read_text(path):
    """The text of a file, or of all files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return "".join((gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes()).decode() for f in files)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows"])
def test_lines_of_text_and_back(tmp_path, name):
    path = tmp_path / "deep" / name
    rows = [make_row(1), make_row(0), make_row(0, n_layers=1, C=3.0)]
    assert write_lines(rows, path) == 3
    first = read_text(path)
    write_lines(reversed(rows), path)
    assert read_text(path) == first
    found = read_rows(path)
    assert sorted(found, key=Row.to_json) == sorted(rows, key=Row.to_json)
    assert first.count('"b"') == 1  # the names of the classes only once


def test_equal_rows_are_equal_bytes(tmp_path):
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        write_lines([make_row(0), make_row(1)], tmp_path / name)
        time.sleep(1.1 if name == "one.jsonl.gz" else 0)  # gzip's clock counts seconds
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


def test_a_folder_has_one_file_per_data_set(tmp_path):
    rows = [Row(Settings(name), 0, 0.5, data=name) for name in ("ar", "yaleb", "/home/me/my photos")]
    write_lines(rows, tmp_path / "rows")
    assert sorted(file.name for file in (tmp_path / "rows").iterdir()) == [
        "_home_me_my_photos.jsonl.gz", "ar.jsonl.gz", "yaleb.jsonl.gz",
    ]  # fmt: skip
    write_lines([Row(Settings("ar"), 1)], tmp_path / "rows")  # the files of other data sets stay
    assert {(row.settings.dataset, row.seed) for row in read_rows(tmp_path / "rows")} == {
        ("ar", 1), ("yaleb", 0), ("/home/me/my photos", 0),
    }  # fmt: skip


def test_class_names_survive_a_first_row_without_them(tmp_path):
    rows = [replace(make_row(0), class_names=[]), make_row(1)]
    write_lines(rows, tmp_path / "rows.jsonl")
    assert [row.class_names for row in read_rows(tmp_path / "rows.jsonl")] == [["a", "b"]] * 2


def test_what_cannot_hold_rows_as_text_is_said_at_once(tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    for refuse in (store.read_lines, store.write_lines):
        with pytest.raises(ValueError, match="rows.txt cannot hold rows.*folder"):
            refuse(tmp_path / "rows.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty has no .jsonl"):
        read_rows(tmp_path / "empty")
    write_lines([make_row()], tmp_path / "rows.jsonl.gz")
    content = (tmp_path / "rows.jsonl.gz").read_bytes()
    for damaged in (content[:-12], b"no gzip at all", content[:20] + b"xxxx" + content[24:]):
        (tmp_path / "rows.jsonl.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match="rows.jsonl.gz is damaged"):
            read_rows(tmp_path / "rows.jsonl.gz")


def write_format_1(path, settings):
    """A results file as the version before wrote it."""
    result = {"settings": settings, "seed": 3, "accuracy": 0.5, "mean_over_classes": 0.25, "class_names": ["a"]}
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (key TEXT PRIMARY KEY, settings TEXT, seed INTEGER, result TEXT)")
    connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", ("old", "{}", 3, json.dumps(result)))
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


def test_a_file_in_format_1_is_converted(tmp_path):
    write_format_1(tmp_path / "runs.sqlite", {"dataset": "ar", "C": 1.0, "n_neighbors": "all", "tangents": 64})
    settings = Settings("ar", n_neighbors=None, first_order=64)
    for _ in range(2):
        store = Store(tmp_path / "runs.sqlite")
        assert store.is_finished(settings, 3)
        assert list(store.rows()) == [Row(settings, 3, 0.5, 0.25, class_names=["a"])]
        store.close()


def test_a_file_in_format_1_that_cannot_be_converted_is_left_alone(tmp_path):
    path = tmp_path / "runs.sqlite"
    write_format_1(path, {"dataset": "ar", "colour": "red"})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="runs.sqlite cannot be converted.*colour.*nothing was changed"):
        Store(path)
    assert path.read_bytes() == before


def test_sweeps_may_begin_one_file_at_the_same_moment(tmp_path):
    together = Barrier(4)

    def begin(path, seed):
        together.wait()
        store = Store(path)
        store.add(make_row(seed))
        store.close()

    with ThreadPoolExecutor(4) as sweeps:
        for number in range(10):
            path = tmp_path / f"{number}.sqlite"
            list(sweeps.map(begin, [path] * 4, range(4)))
            assert {row.seed for row in read_rows(path)} == {0, 1, 2, 3}


def test_a_file_of_another_version_is_left_alone(tmp_path):
    path = tmp_path / "runs.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (something TEXT)")
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="format 99.*nothing was changed"):
        Store(path)
    assert path.read_bytes() == before


def test_what_is_no_results_file_is_said(tmp_path):
    (tmp_path / "notes.sqlite").write_text("these are notes, and no database at all" * 10)
    with pytest.raises(ValueError, match="notes.sqlite"):
        Store(tmp_path / "notes.sqlite")
    (tmp_path / "rows.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match="line 1"):
        read_rows(tmp_path / "rows.jsonl")
    with pytest.raises(ValueError, match="ddlcn reproduce"):
        read_rows(tmp_path / "none.sqlite")


def test_a_full_disk_is_a_clear_message_and_loses_nothing(tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    store.add(make_row(0))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    large = Row(make_row(1).settings, 1, class_names=["x" * 100] * 1000)
    with pytest.raises(OSError, match="runs.sqlite.*full.*safe"):
        store.add(large)
    assert [row.seed for row in store.rows()] == [0]
