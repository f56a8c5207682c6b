"""Downloads: checked, continued where they stopped, nothing half-done under a final name."""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from typer.testing import CliRunner

from ddlcn import cli
from ddlcn.datasets.catalogue import Download
from ddlcn.datasets.fetch import CHUNK, fetch
from tests.datasets import packing

CONTENT = np.random.default_rng(0).bytes(300_000)
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Server(BaseHTTPRequestHandler):
    """Serves CONTENT; the class attributes say how it misbehaves, and record what it sent."""

    cut_after: int | None = None
    knows_range = True
    status = 200
    sent: list[tuple[int, int]] = []  # noqa: RUF012, first byte and number of bytes of each answer

    def do_GET(self):
        begin = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if self.status != 200:
            self.send_error(self.status)
            return
        if asked and self.knows_range:
            begin = int(asked[1])
            if begin >= len(CONTENT):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(CONTENT)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT) - begin))
        self.end_headers()
        rest = CONTENT[begin : None if self.cut_after is None else begin + self.cut_after]
        self.sent.append((begin, len(rest)))
        self.wfile.write(rest)  # closing the connection early is what a cut line looks like

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A local server for "mnist" as one file, data.bin; its handler class, to make it misbehave."""
    pytest.importorskip("pooch")
    handler = type("Handler", (Server,), {"sent": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as local:
        thread = threading.Thread(target=local.serve_forever, args=(0.02,))
        thread.start()
        url = f"http://127.0.0.1:{local.server_port}/data.bin"
        packing.expect(monkeypatch, "mnist", 10, 40, downloads=(Download(url, "data.bin", MD5),))
        monkeypatch.setenv("DDLCN_DATA", str(tmp_path))
        yield handler
        local.shutdown()
        thread.join()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_whole_with_progress(server, tmp_path):
    seen = []
    (path,) = fetch("mnist", tmp_path, lambda *step: seen.append(step))
    assert path == tmp_path / "mnist/data.bin"
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["data.bin"]
    assert seen[-1] == ("data.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    fetch("mnist", tmp_path)
    assert len(server.sent) == 1  # the second time nothing is sent


def test_a_cut_line_is_continued(server, tmp_path):
    folder = tmp_path / "mnist"
    server.cut_after = 2 * CHUNK
    with pytest.raises(OSError, match=r"stopped.*131,072 bytes are kept: run the same command again"):
        fetch("mnist", tmp_path)
    assert names(folder) == ["data.bin.part"]
    with pytest.raises(OSError, match=r"262,144 bytes are kept"):
        fetch("mnist", tmp_path)
    server.cut_after = None
    (path,) = fetch("mnist", tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.sent == [(0, 2 * CHUNK), (2 * CHUNK, 2 * CHUNK), (4 * CHUNK, len(CONTENT) - 4 * CHUNK)]
    assert names(folder) == ["data.bin"]


@pytest.mark.parametrize("length", [100_000, 300_000, 300_001])
def test_a_server_without_range_starts_again(server, tmp_path, length):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/data.bin.part").write_bytes(b"x" * length)
    server.knows_range = False
    (path,) = fetch("mnist", tmp_path)
    assert path.read_bytes() == CONTENT


def test_a_part_that_is_complete_or_too_long(server, tmp_path):
    part = tmp_path / "mnist/data.bin.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT)  # stopped between the last byte and the final name
    (path,) = fetch("mnist", tmp_path)
    assert server.sent == []
    assert path.read_bytes() == CONTENT
    path.unlink()
    part.write_bytes(CONTENT + b"more")
    (path,) = fetch("mnist", tmp_path)
    assert path.read_bytes() == CONTENT


def test_a_second_download_of_the_same_file_stands_back(server, tmp_path):
    refused = []

    def fetch_again(*_):
        with pytest.raises(OSError, match=r"data\.bin\.part is being downloaded by another process: wait") as caught:
            fetch("mnist", tmp_path)
        refused.append(caught)

    (path,) = fetch("mnist", tmp_path, fetch_again)
    assert refused
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["data.bin"]


@pytest.mark.parametrize("_", range(40))  # a race: each round had failed one time in ten
def test_many_at_once_give_the_file_or_stand_back(server, tmp_path, _):
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(fetch, "mnist", tmp_path) for _ in range(16)]
    errors = [call.exception() for call in calls]
    assert None in errors
    assert all(error is None or "by another process" in str(error) for error in errors)
    assert (tmp_path / "mnist/data.bin").read_bytes() == CONTENT
    assert names(tmp_path / "mnist") == ["data.bin"]


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    part = tmp_path / "mnist/data.bin.part"
    part.parent.mkdir()
    part.write_bytes(b"x" * 1000)  # the start of another file
    with pytest.raises(ValueError, match="wrong md5 and was deleted"):
        fetch("mnist", tmp_path)
    assert names(part.parent) == []
    (path,) = fetch("mnist", tmp_path)  # and the next one starts afresh
    assert path.read_bytes() == CONTENT


def test_checksums_may_be_sha256(server, tmp_path, monkeypatch):
    (mine,) = packing.CATALOGUE["mnist"].downloads
    packing.expect(monkeypatch, "mnist", 10, 40, downloads=(Download(mine.url, "data.bin", SHA256),))
    for _ in range(2):
        (path,) = fetch("mnist", tmp_path)
        assert path.read_bytes() == CONTENT
    assert len(server.sent) == 1
    path.unlink()
    wrong = SHA256[:-1] + ("0" if SHA256[-1] != "0" else "1")
    packing.expect(monkeypatch, "mnist", 10, 40, downloads=(Download(mine.url, "data.bin", wrong),))
    with pytest.raises(ValueError, match="wrong sha256 and was deleted"):
        fetch("mnist", tmp_path)
    assert names(tmp_path / "mnist") == []


def test_a_file_of_yours_is_not_overwritten(server, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/data.bin").write_bytes(b"mine")
    with pytest.raises(ValueError, match="exists but is not the file of http.*delete it"):
        fetch("mnist", tmp_path)
    assert (tmp_path / "mnist/data.bin").read_bytes() == b"mine"


def test_a_set_that_is_here_is_not_fetched(server, tmp_path):
    packing.write_mnist(tmp_path)
    assert fetch("mnist", tmp_path) == [tmp_path / "mnist"]
    assert server.sent == []


def test_omniglot_that_is_here_is_not_fetched(tmp_path, monkeypatch):
    packing.write_omniglot(tmp_path, side=28)
    packing.write_background(tmp_path)
    for name, n_classes, n_images in (("omniglot", 8, 16), ("omniglot-background", 9, 18)):
        packing.expect(monkeypatch, name, n_classes, n_images)
        assert fetch(name, tmp_path) == [tmp_path / "omniglot"]


def test_an_error_of_the_server_is_told(server, tmp_path):
    server.status = 404
    with pytest.raises(OSError, match="the server says 404"):
        fetch("mnist", tmp_path)


def test_no_server_at_all(server, tmp_path, monkeypatch):
    url = "http://127.0.0.1:9/data.bin"  # the discard port: nobody listens
    packing.expect(monkeypatch, "mnist", 10, 40, downloads=(Download(url, "data.bin", MD5),))
    with pytest.raises(OSError, match=r"stopped \(ConnectionError\); 0 bytes are kept"):
        fetch("mnist", tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is a disk that is always full")
def test_a_full_disk(server, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/data.bin.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="cannot write to .*mnist.*: No space left on device; fix that"):
        fetch("mnist", tmp_path)
    assert not (tmp_path / "mnist/data.bin").exists()


def test_a_root_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="cannot write to .*file.*: Not a directory"):
        fetch("mnist", tmp_path / "file")


def test_without_pooch(server, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ValueError, match=re.escape("pip install 'ddlcn[data]'")):
        fetch("mnist", tmp_path)


@pytest.mark.parametrize(("name", "words"), [("yaleb", "CroppedYale.zip"), ("ar", "Ask its owners")])
def test_sets_without_an_address_say_how_to_get_them(tmp_path, name, words):
    with pytest.raises(ValueError, match=f"has no public address.*{words}"):
        fetch(name, tmp_path)
    with pytest.raises(ValueError, match="unknown data set"):
        fetch("imagenet", tmp_path)


def test_the_command(server, tmp_path):
    result = CliRunner().invoke(cli.app, ["data", "fetch", "mnist"])
    assert result.exit_code == 0
    assert "data.bin" in result.output
    assert (tmp_path / "mnist/data.bin").read_bytes() == CONTENT
