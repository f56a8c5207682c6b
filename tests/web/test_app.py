"""The server: the same answers as the model, politeness to rubbish, nothing on the disk."""

from __future__ import annotations

import tempfile

import pytest

from ddlcn import DDLCNClassifier, load_model

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

from ddlcn.web.app import HEADERS, create_app
from ddlcn.web.uploads import Limits


@pytest.fixture(scope="module")
def model(digit_model):
    return load_model(digit_model)


@pytest.fixture(scope="module")
def client(model):
    return connect(create_app(model, "<digits>"))


def connect(app):
    return TestClient(app, base_url="http://127.0.0.1")


def upload(path, field="images"):
    return (field, (path.name, path.read_bytes(), "image/png"))


def test_answers_are_the_models(client, model, digit_folder):
    paths = sorted(digit_folder.glob("*/11.png"))
    answers = client.post("/predict?top=2", files=[upload(path) for path in paths]).json()
    assert [answer["name"] for answer in answers] == ["11.png"] * 5
    assert [answer["label"] for answer in answers] == model.predict(paths).tolist()
    for answer, row in zip(answers, model.predict_proba(paths), strict=True):
        assert answer["top"][0]["probability"] == pytest.approx(row.max(), abs=1e-6)
        assert len(answer["top"]) == 2
    rejecting = client.post("/predict?reject=true", files=[upload(path) for path in paths]).json()
    assert [answer["label"] for answer in rejecting] == model.predict(paths, reject=True).tolist()


def test_rubbish_is_refused_and_the_others_are_predicted(client, digit_folder):
    good = digit_folder / "digit1" / "12.png"
    files = [
        ("images", ("page.jpg", b"<html>", "image/jpeg")),
        upload(good),
        ("images", ("none.png", b"", "image/png")),
    ]
    first, second, third = client.post("/predict", files=files).json()
    assert "not an image" in first["error"]
    assert second["label"] == "digit1"
    assert third["error"] == "the file is empty"
    assert client.get("/health").json()["status"] == "ok"


def test_explanations(client, model, digit_folder):
    path = digit_folder / "digit2" / "12.png"
    answer = client.post("/explain", files=[upload(path, "image")]).json()
    ranking = model.explain(path).ranking
    assert [side["label"] for side in answer["sides"]] == ranking[:2].tolist()
    assert all(side["heat"].startswith("data:image/jpeg;base64,") for side in answer["sides"])
    refused = client.post("/explain", files=[("image", ("x.png", b"no", "image/png"))])
    assert (refused.status_code, "not an image" in refused.json()["error"]) == (422, True)


def test_a_model_that_votes_cannot_explain_and_says_so(digit_folder):
    paths = sorted(digit_folder.glob("digit[01]/*.png"))
    voting = DDLCNClassifier(n_layers=1, atoms_per_class=2, svm="libsvm", random_state=0).fit(
        paths, [path.parent.name for path in paths]
    )
    client = connect(create_app(voting))
    assert client.post("/predict", files=[upload(paths[0])]).json()[0]["label"] == "digit0"
    refused = client.post("/explain", files=[upload(paths[0], "image")])
    assert (refused.status_code, "votes" in refused.json()["error"]) == (422, True)


def test_every_answer_has_the_headers(client):
    for address in ("/", "/health", "/docs", "/static/page.js", "/static/absent", "/openapi.json"):
        response = client.get(address)
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
    assert client.get("/static/../app.py").status_code == 404
    assert "&lt;digits&gt;" in client.get("/").text


def test_nothing_is_asked_of_the_network(client):
    for address in ("/", "/docs", "/static/page.js", "/static/page.css"):
        text = client.get(address).text.replace("http://127.0.0.1", "")
        assert "http://" not in text
        assert "https://" not in text


def test_examples_are_those_of_this_address(client):
    text = client.get("/docs", headers={"host": "127.0.0.1:8123"}).text
    assert "curl -F image=@a.jpg http://127.0.0.1:8123/explain" in text
    assert "8000" not in text


def test_the_interface_is_described(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {"/predict", "/explain", "/health"}


def test_pages_elsewhere_get_no_answer(client, digit_folder):
    path = digit_folder / "digit2" / "12.png"
    foreign = client.post("/predict", files=[upload(path)], headers={"origin": "http://evil.example"})
    assert foreign.status_code == 403
    assert client.get("/health", headers={"host": "evil.example"}).status_code == 400
    own = client.post("/predict", files=[upload(path)], headers={"origin": "http://127.0.0.1"})
    assert own.status_code == 200


def test_limits(model, digit_folder):
    path = digit_folder / "digit2" / "12.png"
    strict = connect(create_app(model, limits=Limits(max_request_bytes=100)))
    assert "too large" in strict.post("/predict", files=[upload(path)]).json()["error"]
    several = connect(create_app(model, limits=Limits(max_images=2)))
    (answer,) = several.post("/predict", files=[upload(path)] * 3).json()
    assert answer["error"] == "more than 2 images at once"


def test_what_takes_too_long_is_given_up(model, digit_folder, monkeypatch):
    import time

    monkeypatch.setattr("ddlcn.web.app._predict", lambda *_: time.sleep(1.0))
    slow = connect(create_app(model, limits=Limits(max_seconds=0.1)))
    (answer,) = slow.post("/predict", files=[upload(digit_folder / "digit2" / "12.png")]).json()
    assert answer["error"] == "it took too long"


def test_no_file_is_written(model, monkeypatch):
    """Uploads beyond a megabyte would go to a temporary file."""
    client = connect(create_app(model))

    def refuse(*_):
        raise AssertionError("a file was written")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", refuse)
    (answer,) = client.post("/predict", files=[("images", ("big.png", bytes(5_000_000), "image/png"))]).json()
    assert "not an image" in answer["error"]
