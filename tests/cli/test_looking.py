"""The commands that look at pictures."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys

import pytest
from typer.testing import CliRunner

from ddlcn import DDLCNClassifier, cli, load_model
from ddlcn.blocks.encoding import IMAGES_PER_BATCH
from ddlcn.web.app import listen
from ddlcn.workflows.learned_from import digest_files
from ddlcn.workflows.predict import predict_each


@pytest.fixture
def run():
    return lambda *arguments, **more: CliRunner().invoke(cli.app, [str(a) for a in arguments], **more)


def test_predict_a_file_and_a_folder(run, digit_model, digit_folder):
    result = run("predict", digit_model, digit_folder / "digit1" / "12.png", digit_folder / "digit0")
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert len(lines) == 17
    assert lines[0].startswith(f"{digit_folder / 'digit1' / '12.png'}: digit1 ")
    assert lines[0].endswith(" %")


def test_predict_as_json_and_csv(run, digit_model, digit_folder):
    names = [str(path) for path in sorted((digit_folder / "digit2").iterdir())[:3]]
    rows = [json.loads(line) for line in run("predict", digit_model, *names, "--json", "--top", 2).output.splitlines()]
    assert [row["path"] for row in rows] == names
    for row in rows:
        assert row["label"] == row["top"][0]["label"]
        assert len(row["top"]) == 2
        assert 1 >= row["top"][0]["probability"] >= row["top"][1]["probability"] >= 0
    listed = run("predict", digit_model, "-", "--csv", "--top", 2, input="\n".join(names)).output
    table = list(csv.DictReader(io.StringIO(listed)))
    assert [row["path"] for row in table] == names
    assert [row["label"] for row in table] == [row["label"] for row in rows]
    assert [float(row["probability2"]) for row in table] == [row["top"][1]["probability"] for row in rows]


@pytest.mark.parametrize("command", [["explain", "-o"], ["evaluate", "--html"]], ids=lambda command: command[0])
def test_a_page_that_cannot_be_made_is_told_before_the_work(run, monkeypatch, tmp_path, command):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run(command[0], tmp_path / "absent.ddlcn", tmp_path, command[1], tmp_path / "page.html")
    assert isinstance(result.exception, ImportError)
    assert "pip install 'ddlcn[report]'" in str(result.exception)


@pytest.mark.parametrize(
    "command",
    [["train", "-o"], ["add", "-o"], ["compare", "--html"], ["evaluate", "--html"], ["explain", "-o"]],
    ids=lambda command: command[0],
)
def test_a_file_that_cannot_be_written_is_told_before_the_work(run, tmp_path, command):
    absent = [] if command[0] in ("train", "compare") else [tmp_path / "absent.ddlcn"]
    result = run(command[0], *absent, tmp_path / "absent", command[1], tmp_path)
    assert isinstance(result.exception, IsADirectoryError)
    assert str(tmp_path) in str(result.exception)


def test_a_port_that_is_taken_is_told_before_the_model_is_read(run, tmp_path):
    with listen("127.0.0.1", 0) as taken:
        result = run("serve", tmp_path / "absent.ddlcn", "--port", taken.getsockname()[1])
    assert isinstance(result.exception, OSError)
    assert "choose another --port" in str(result.exception)
    assert "http://" not in result.output


def test_measured_on_its_own_pictures_it_warns(run, digit_model, digit_folder, tmp_path):
    model = load_model(digit_model)
    model.card_["files"] = digest_files((digit_folder / "digit1").iterdir())
    model.save(tmp_path / "m.ddlcn")
    result = run("evaluate", tmp_path / "m.ddlcn", digit_folder, "--html", tmp_path / "page.html")
    shutil.copytree(digit_folder / "digit0", tmp_path / "digits" / "digit0")
    assert "note: the model learned from" in result.stderr
    assert "the accuracy is not that on new ones" in (tmp_path / "page.html").read_text()
    assert "note: the model" not in run("evaluate", tmp_path / "m.ddlcn", tmp_path / "digits").stderr


def test_predict_says_what_it_cannot_read_and_goes_on(run, digit_model, digit_folder, tmp_path):
    bad, good = tmp_path / "page.jpg", digit_folder / "digit1" / "12.png"
    bad.write_text("<html>not a picture</html>")
    result = run("predict", digit_model, bad, good)
    assert result.exit_code == 1
    assert "page.jpg" in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout.startswith(f"{good}: digit1")
    first, second = map(json.loads, run("predict", digit_model, bad, good, "--json").stdout.splitlines())
    assert "not an image" in first["error"]
    assert second["label"] == "digit1"


def test_predict_rejects_what_it_does_not_know(run, digit_model, digit_folder):
    """The model has never seen a 4."""
    strange = [
        json.loads(s)
        for s in run("predict", digit_model, digit_folder / "digit4", "--json", "--reject").output.splitlines()
    ]
    own = [
        json.loads(s)
        for s in run("predict", digit_model, digit_folder / "digit0", "--json", "--reject").output.splitlines()
    ]
    assert sum(row["label"] is None for row in strange) > sum(row["label"] is None for row in own)
    assert all(row["known"] == (row["label"] is not None) for row in strange + own)
    assert "unknown (most like" in run("predict", digit_model, digit_folder / "digit4", "--reject").output


def test_explain_writes_a_page(run, digit_model, digit_folder, tmp_path):
    result = run("explain", digit_model, digit_folder / "digit3" / "12.png", "-o", tmp_path / "why.html")
    assert result.output == f"wrote {tmp_path / 'why.html'}\n"
    assert "<h1>digit3" in (tmp_path / "why.html").read_text()


def test_evaluate_counts_and_writes_a_page(run, digit_model, digit_folder, tmp_path):
    folder = tmp_path / "new"
    shutil.copytree(digit_folder, folder)
    (folder / "digit1" / "bad.jpg").write_text("hello")
    result = run("evaluate", digit_model, folder, "--html", tmp_path / "page.html")
    assert result.exit_code == 0
    assert "of 64 images (95 % interval" in result.stdout
    assert "known against 16 images of unknown classes: area under the curve 0." in result.stdout
    assert "bad.jpg" in result.stderr
    assert "bad.jpg" in (tmp_path / "page.html").read_text()


def test_a_list_goes_through_in_batches_and_unreadable_images_keep_their_places(
    run, digit_model, digit_folder, tmp_path
):
    bad = tmp_path / "page.jpg"
    bad.write_text("<html>not a picture</html>")
    names = [str(path) for path in sorted(digit_folder.glob("digit[0-2]/*.png"))]
    assert len(names) > 2 * IMAGES_PER_BATCH
    alone = {name: json.loads(run("predict", digit_model, name, "--json").stdout) for name in names[::9]}
    broken = (0, 5, IMAGES_PER_BATCH - 1, IMAGES_PER_BATCH, len(names) - 1)
    for i in broken:
        names[i] = str(bad)
    result = run("predict", digit_model, "-", "--json", input="\n".join(names))
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert f"{len(broken)} could not be read" in result.stderr
    assert [row["path"] for row in rows] == names
    assert tuple(i for i, row in enumerate(rows) if "not an image" in row.get("error", "")) == broken
    for row in rows:
        if row["path"] in alone:
            assert row["label"] == alone[row["path"]]["label"]
            assert row["top"][0]["probability"] == pytest.approx(alone[row["path"]]["top"][0]["probability"], abs=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_endless_stream_is_read_a_few_batches_ahead(digit_model, digit_folder, tmp_path, n_jobs):
    good, bad = digit_folder / "digit2" / "12.png", tmp_path / "absent.png"
    taken = []

    def endless():
        while True:
            taken.append(bad if len(taken) % 10 == 7 else good)
            yield str(len(taken)), taken[-1]

    stream = predict_each(load_model(digit_model), endless(), n_jobs=n_jobs)
    for i in range(5 * IMAGES_PER_BATCH):
        prediction = next(stream)
        assert prediction.name == str(i + 1)
        assert (prediction.label, "absent.png" in prediction.error) == (
            (None, True) if i % 10 == 7 else ("digit2", False)
        )
        assert len(taken) <= i + 1 + (2 * n_jobs + 1) * IMAGES_PER_BATCH
    stream.close()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_batch_of_nothing_but_rubbish(digit_folder, tmp_path, n_classes):
    paths = [path for path in sorted(digit_folder.glob("*/0*.png")) if int(path.parent.name[-1]) < n_classes]
    model = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0).fit(paths, [p.parent.name for p in paths])
    named = [("gone", tmp_path / "absent.png")] * (IMAGES_PER_BATCH + 1) + [("here", paths[0])]
    *gone, here = predict_each(model, named)
    assert all(prediction.error and prediction.label is None for prediction in gone)
    assert here.label == model.predict(paths[:1])[0]
