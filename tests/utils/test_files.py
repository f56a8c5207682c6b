"""Files are written whole: the old one or the new one, whatever fails, whoever writes at the same time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ddlcn
from ddlcn.utils.files import check_writable, open_whole, write_whole


@pytest.fixture
def umask():
    """The usual umask, whatever the tests run under."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_text_and_bytes_arrive_and_nothing_else_is_left(tmp_path, umask):
    write_whole(tmp_path / "a", "ä\n")
    write_whole(tmp_path / "deep" / "er" / "b", b"\0\1", make_folder=True)
    assert (tmp_path / "a").read_bytes() == "ä\n".encode()
    assert (tmp_path / "deep/er/b").read_bytes() == b"\0\1"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["a", "b"]
    with open_whole(tmp_path / "a") as file:
        file.write(b"new")
        assert (tmp_path / "a").read_bytes() == "ä\n".encode()  # not before the end
    assert (tmp_path / "a").read_bytes() == b"new"


def test_whether_it_can_be_written_is_tried_without_touching_it(tmp_path):
    write_whole(tmp_path / "a", "old")
    check_writable(tmp_path / "a")
    check_writable(tmp_path / "deep" / "b", make_folder=True)
    check_writable(os.devnull)
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]
    for path, error in (
        (tmp_path, IsADirectoryError),
        (tmp_path / "absent" / "b", FileNotFoundError),
        (tmp_path / "a" / "b", NotADirectoryError),
    ):
        with pytest.raises(error, match=re.escape(str(path))):
            check_writable(path)


def test_permissions_are_those_of_an_ordinary_file(tmp_path, umask):
    write_whole(tmp_path / "a", "1")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644
    (tmp_path / "a").chmod(0o600)
    write_whole(tmp_path / "a", "2")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600  # what was private stays so


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("bad")])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step, error):
    write_whole(tmp_path / "a", "old")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)) as caught:
        write_whole(tmp_path / "a", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"
    if isinstance(error, OSError):
        assert str(caught.value) == f"[Errno 28] No space left on device: '{tmp_path / 'a'}'"


def test_the_message_names_the_file_that_was_asked_for(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match=r"missing/a'$"):
        write_whole(tmp_path / "missing" / "a", "")
    with pytest.raises(NotADirectoryError, match=r"file/a'$"):
        write_whole(tmp_path / "file" / "a", "")
    with pytest.raises(IsADirectoryError, match=re.escape(str(tmp_path))):
        write_whole(tmp_path, "")
    with pytest.raises(OSError, match=r"cannot write .*/a: 8 requested and 0 written"), open_whole(tmp_path / "a"):
        raise OSError("8 requested and 0 written")  # numpy's words for a full disk
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_links_and_devices_stay_what_they_are(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "goal")
    write_whole(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "goal").read_text() == "x"
    write_whole(os.devnull, "x")
    assert not Path(os.devnull).is_file()


def test_long_names_can_be_written(tmp_path):
    write_whole(tmp_path / ("ä" * 120), "x")
    assert len(list(tmp_path.iterdir())) == 1


def test_many_writers_at_once_and_a_reader_sees_whole_files_only(tmp_path):
    path = tmp_path / "a"
    versions = [bytes([i]) * 100_000 for i in range(8)]
    write_whole(path, versions[0])
    errors = []

    def write(content):
        try:
            for _ in range(10):
                write_whole(path, content)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in versions]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert path.read_bytes() in versions
    assert not errors
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_is_killed_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    write_whole(path, "old")
    code = (
        "import os, signal, sys; from ddlcn.utils.files import open_whole\n"
        "with open_whole(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, path]).returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_every_writer_goes_through_here():
    """Only this file gives a finished file its name; a download has its own way, since it goes on where it stopped."""
    source = Path(ddlcn.__file__).parent
    pattern = re.compile(
        r"os\.replace|os\.rename|mkstemp|\.write_text\(|\.write_bytes\(|open\([^)\n]*[\"'][wax]b?[\"']"
    )
    found = {str(path.relative_to(source)) for path in source.rglob("*.py") if pattern.search(path.read_text())}
    # memory.py writes into /proc, which is no file; store.py into a temporary folder of its own process.
    assert found == {"utils/files.py", "datasets/fetch.py", "experiments/memory.py", "descriptors/store.py"}
