"""The results file: rows in, the same rows out, and nothing lost."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
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


def test_lines_of_text_and_back(tmp_path):
    rows = [make_row(1), make_row(0)]
    assert write_lines(rows, tmp_path / "rows.jsonl") == 2
    first = (tmp_path / "rows.jsonl").read_text()
    write_lines(reversed(rows), tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_text() == first
    found = read_rows(tmp_path / "rows.jsonl")
    assert sorted(found, key=Row.to_json) == sorted(rows, key=Row.to_json)
    assert first.count("class_names") == 2
    assert first.count('"b"') == 1  # the names of the classes only once


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
