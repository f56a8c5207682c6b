"""Vectors of whole images: a network's means, and vectors made elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC, LinearSVC

from ddlcn.baselines import VectorSVM
from ddlcn.baselines.embeddings import NetworkMeans, StoredVectors
from ddlcn.baselines.inputs import make_input
from ddlcn.baselines.plain import choose


@pytest.fixture
def table(tmp_path):
    """Two classes of files that do not exist, and their vectors."""
    rng = np.random.default_rng(0)
    names = [f"{kind}/{i}.jpg" for kind in ("cats", "dogs") for i in range(6)]
    vectors = rng.normal(size=(12, 5))
    vectors[:6, 0] += 9
    vectors[6:, 0] -= 9
    return [tmp_path / "photos" / name for name in names], names, vectors


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_vectors_are_found_by_the_last_parts_of_a_path(table, tmp_path, suffix):
    paths, names, vectors = table
    file = tmp_path / f"clip{suffix}"
    if suffix == ".npz":
        np.savez(file, names=np.array(names), vectors=vectors)
    else:
        file.write_text(
            "".join(f"{n},{','.join(map(repr, v.tolist()))}\n" for n, v in zip(names, vectors, strict=True))
        )
    found = make_input(str(file), seed=0).fit().transform(paths[::-1])
    np.testing.assert_allclose(found, (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[::-1])
    model = VectorSVM(features=str(file)).fit(paths[::2], ["cat"] * 3 + ["dog"] * 3)
    assert model.score(paths[1::2], ["cat"] * 3 + ["dog"] * 3) == 1.0
    with pytest.raises(ValueError, match=r"no vector of .*birds/1\.jpg"):
        StoredVectors(file).fit().transform([tmp_path / "birds/1.jpg"])
    with pytest.raises(ValueError, match="by name; got ndarray"):
        StoredVectors(file).fit().transform([np.zeros((8, 8))])


def test_files_that_hold_no_vectors_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        StoredVectors(tmp_path / "none.npz").fit()
    np.savez(tmp_path / "a.npz", other=np.zeros(3))
    (tmp_path / "a.csv").write_text("x.jpg,one,two\n")
    (tmp_path / "b.csv").write_text("x.jpg,1,nan\n")
    for name in ("a.npz", "a.csv", "b.csv"):
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            StoredVectors(tmp_path / name).fit()
    np.savez(tmp_path / "pickled.npz", names=np.array([{"a": 1}], object), vectors=np.zeros((1, 2)))
    with pytest.raises(ValueError, match="pickled"):
        StoredVectors(tmp_path / "pickled.npz").fit()


def test_a_networks_means_are_of_length_one(tmp_path):
    pytest.importorskip("onnxruntime")
    from tests.descriptors.pretrained.tiny import convolve, write_tiny

    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8)
    mean = convolve(picture.astype(float)).mean(axis=(1, 2))
    network = write_tiny(tmp_path / "tiny.onnx")
    for layer in ("pooled", "relu"):
        found = NetworkMeans(layer, (32,), root=False, network=network).transform([picture])
        np.testing.assert_allclose(found[0], mean / np.linalg.norm(mean), rtol=2e-3)
    rooted = NetworkMeans("pooled", (32,), network=network).transform([picture])
    np.testing.assert_allclose(rooted[0], np.sqrt(mean / mean.sum()), rtol=2e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_what_is_chosen_is_best_on_folds_by_scikit_learn(kernel):
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 12)
    X = rng.normal(size=(36, 4)) + np.eye(4)[y] * 1.5
    X[:, 3] = np.sin(3 * X[:, 0])
    chosen = choose(X, y, kernel, seed=1)
    folds = StratifiedKFold(3, shuffle=True, random_state=1)

    def rate(C, gamma):
        svm = LinearSVC(C=C, max_iter=20000, tol=1e-6) if kernel == "linear" else SVC(C=C, gamma=gamma)
        return cross_val_score(svm, X, y, cv=folds, scoring="balanced_accuracy").mean()

    usual = 1 / (X.shape[1] * X.var())
    grid = [rate(C, usual * f) for C in (0.1, 1.0, 10.0, 100.0) for f in (0.1, 0.3, 1.0, 3.0)]
    assert rate(chosen["C"], chosen.get("gamma", usual)) == pytest.approx(max(grid), abs=1e-9)
    assert VectorSVM(kernel, C="auto", random_state=0).fit(X, y).score(X, y) > 0.6


def test_a_single_image_per_class_needs_no_folds():
    assert VectorSVM(C="auto").fit(np.eye(3), [0, 1, 2]).predict(np.eye(3)).tolist() == [0, 1, 2]
