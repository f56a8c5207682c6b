"""DDLCNClassifier: it recognises, it is a scikit-learn citizen, and its errors help."""

from __future__ import annotations

import pickle
from itertools import pairwise

import joblib
import numpy as np
import pytest
from PIL import Image
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from ddlcn import DDLCNClassifier, DenseSIFT, Descriptors
from ddlcn.svm import route


def small(**parameters) -> DDLCNClassifier:
    return DDLCNClassifier(**{"atoms_per_class": 3, "n_neighbors": 5, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def split(stripes):
    images, labels = stripes
    return images[:30], labels[:30], images[30:], labels[30:]


@pytest.fixture(scope="module")
def fitted(split):
    return small().fit(split[0], split[1])


@parametrize_with_checks([small()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_recognises(fitted, split):
    assert fitted.score(split[2], split[3]) >= 0.9
    assert list(fitted.classes_) == ["across", "along", "aslant"]


def test_shapes(fitted, split):
    n, n_columns = len(split[2]), 2 * 21 * 9
    features = fitted.transform(split[2])
    assert sparse.issparse(features)
    assert features.format == "csr"
    assert features.shape == (n, n_columns)
    assert fitted.coef_.shape == (3, n_columns)
    assert fitted.intercept_.shape == (3,)
    assert [d.shape for d in fitted.dictionaries_] == [(9, 128), (9, 128)]
    np.testing.assert_allclose(np.sqrt(features.multiply(features).sum(axis=1)), 1.0, atol=1e-5)


def test_decisions_are_linear_in_the_features(fitted, split):
    by_hand = fitted.transform(split[2]) @ fitted.coef_.T + fitted.intercept_
    np.testing.assert_allclose(fitted.decision_function(split[2]), by_hand, atol=1e-6)
    assert np.array_equal(fitted.predict(split[2]), fitted.classes_[by_hand.argmax(axis=1)])


def test_two_classes_give_one_decision(split):
    images, labels = split[0], np.where(split[1] == "along", "yes", "no")
    model = small().fit(images, labels)
    decisions = model.decision_function(images)
    assert decisions.shape == (30,)
    assert np.array_equal(model.predict(images), model.classes_[(decisions > 0).astype(int)])
    assert model.predict_proba(images).shape == (30, 2)
    assert model.score(images, labels) > 0.9


@pytest.mark.parametrize("n_layers", [1, 2, 3, 6])
def test_any_depth(split, n_layers):
    model = small(n_layers=n_layers).fit(split[0], split[1])
    assert len(model.dictionaries_) == n_layers
    assert model.score(split[2], split[3]) >= 0.9
    layers = model.reconstruct(split[2][:2])
    assert [len(image) for image in layers] == [n_layers, n_layers]
    assert layers[0][0].shape == (9, 128)


@pytest.mark.parametrize("n_layers", [1, 2, 3, 6])
def test_any_residual_depth(split, n_layers):
    model = small(n_layers=n_layers, depth="residual", atoms_per_class=1, n_neighbors=3).fit(split[0], split[1])
    assert [len(layer) for layer in model.dictionaries_] == [3] * n_layers
    assert model.score(split[2], split[3]) >= 0.9
    assert model.transform(split[2]).shape == (len(split[2]), 21 * 3 * (1 + 3 * (n_layers - 1)))
    descriptors = DenseSIFT().transform(split[2][:1])[0].values
    errors = [np.linalg.norm(descriptors - layer) for layer in model.reconstruct(split[2][:1])[0]]
    assert len(errors) == n_layers
    assert all(below <= above for above, below in pairwise(errors))


@pytest.mark.parametrize("depth", ["augment", "residual"])
def test_first_order_stands_beside_the_layers(split, depth):
    without, model = (small(depth=depth, first_order=n).fit(split[0], split[1]) for n in (0, 10))
    assert without.first_order_ is None
    F, G = without.transform(split[2]).toarray(), model.transform(split[2]).toarray()
    np.testing.assert_allclose(G[:, : F.shape[1]], F / np.sqrt(2), atol=1e-6)
    assert G.shape[1] - F.shape[1] == 21 * model.first_order_.means.size
    np.testing.assert_allclose(np.linalg.norm(G, axis=1), 1.0, atol=1e-5)
    assert model.score(split[2], split[3]) >= 0.9


def test_one_residual_layer_is_one_augmented_layer(split):
    """Only the empty half for negative codes is gone."""
    one, other = (small(n_layers=1, depth=depth).fit(split[0], split[1]) for depth in ("augment", "residual"))
    features = one.transform(split[2])
    assert np.array_equal(features[:, : features.shape[1] // 2].toarray(), other.transform(split[2]).toarray())
    assert np.array_equal(one.predict(split[2]), other.predict(split[2]))


def test_same_seed_same_residual_model_whatever_the_threads(split):
    one, two = (small(depth="residual", n_jobs=n_jobs).fit(split[0], split[1]) for n_jobs in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)


def test_features_too_long_to_hold_are_streamed(split, monkeypatch):
    held = small(depth="residual", keep_features=True).fit(split[0], split[1])
    monkeypatch.setattr(route, "HELD_BYTES", 10_000)
    monkeypatch.setattr(route, "BLOCK_BYTES", 5_000)
    streamed = small(depth="residual", keep_features=True).fit(split[0], split[1])
    assert (held.kept_ is None, streamed.kept_ is None) == (False, True)  # so it was streamed
    assert streamed.coef_.dtype == held.coef_.dtype == np.float32
    np.testing.assert_allclose(streamed.decision_function(split[2]), held.decision_function(split[2]), atol=1e-5)
    np.testing.assert_allclose(streamed.predict_proba(split[2]), held.predict_proba(split[2]), atol=1e-4)


def test_one_layer_has_no_negative_half(split):
    features = small(n_layers=1).fit(split[0], split[1]).transform(split[2])
    assert features.indices.max() < features.shape[1] // 2


def test_reconstruction_of_layer_1_is_close_to_the_descriptors(split):
    model = small(atoms_per_class=20, n_neighbors=None, beta=1e-4).fit(split[0], split[1])
    descriptors = DenseSIFT().transform(split[2][:1])[0].values
    approximation = model.reconstruct(split[2][:1])[0][0]
    assert np.linalg.norm(approximation - descriptors) < 0.8 * np.linalg.norm(descriptors - descriptors.mean(axis=0))


def test_same_seed_same_model_whatever_the_threads(split):
    models = [small(n_jobs=n_jobs, random_state=3).fit(split[0], split[1]) for n_jobs in (1, 2, 3, 1)]
    for other in models[1:]:
        assert np.array_equal(models[0].coef_, other.coef_)
        for a, b in zip(models[0].dictionaries_, other.dictionaries_, strict=True):
            assert np.array_equal(a, b)
    assert not np.array_equal(models[0].coef_, small(random_state=4).fit(split[0], split[1]).coef_)


def test_fit_twice_is_fit_once(split):
    model = small().fit(split[2], split[3])
    once = small().fit(split[0], split[1])
    assert np.array_equal(model.fit(split[0], split[1]).coef_, once.coef_)


def test_nothing_of_the_user_is_changed(split):
    images, labels = split[0].copy(), split[1].copy()
    features = DenseSIFT(step=5)
    model = small(features=features, deep_atoms=(4,), n_neighbors=(5, 2), class_weight={"along": 2.0})
    before = dict(model.get_params())
    model.fit(images, labels).predict(images)
    assert model.get_params() == before
    assert model.features is features
    assert np.array_equal(images, split[0])
    assert np.array_equal(labels, split[1])


def test_clone_and_set_params(fitted):
    copy = clone(fitted).set_params(beta=0.1, features=DenseSIFT(step=4))
    assert copy.beta == 0.1
    assert copy.get_params()["features__step"] == 4
    assert not hasattr(copy, "coef_")


@pytest.mark.parametrize("svm", ["liblinear", "libsvm"])
def test_pickle_and_joblib(split, tmp_path, svm):
    model = small(svm=svm, features=DenseSIFT(step=4)).fit(split[0], split[1])
    expected = model.decision_function(split[2])
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(split[2]), expected)
    joblib.dump(model, tmp_path / "model.joblib")
    assert np.array_equal(joblib.load(tmp_path / "model.joblib").decision_function(split[2]), expected)
    assert np.array_equal(again.predict_proba(split[2]), model.predict_proba(split[2]))


def test_a_fitted_model_ignores_later_changes_of_its_parameters(split):
    model = small().fit(split[0], split[1])
    expected = model.decision_function(split[2])
    model.set_params(beta=5.0, pyramid=(1,))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).decision_function(split[2]), expected)


def test_grid_search_over_a_list_of_images_with_groups(split):
    images = [image[: 28 + i % 5, :] for i, image in enumerate(split[0])]  # a list, sizes differ
    groups = np.arange(30) // 3
    search = GridSearchCV(small(), {"beta": [0.02, 0.2], "n_layers": [1, 2]}, cv=GroupKFold(2), n_jobs=2)
    search.fit(images, split[1], groups=groups)
    assert search.best_score_ > 0.8
    assert search.best_estimator_.score(list(split[2]), split[3]) > 0.8


def test_in_a_pipeline(split):
    pipeline = Pipeline([("recognise", small())])
    assert cross_val_score(pipeline, split[0], split[1], cv=3).mean() > 0.8


def test_images_in_every_form_give_the_same_answer(fitted, split, tmp_path):
    bytes_ = np.round(split[2][:3] * 255).astype(np.uint8)
    paths = []
    for i, image in enumerate(bytes_):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(image).save(paths[-1])
    expected = fitted.decision_function(bytes_)
    forms = [list(bytes_), paths, [str(p) for p in paths], [Image.fromarray(i) for i in bytes_], iter(paths)]
    forms += [np.repeat(bytes_[..., None], 3, axis=3), bytes_ / 255]
    for images in forms:
        np.testing.assert_allclose(fitted.decision_function(images), expected, atol=2e-5)


def test_classes_may_be_numbers(split):
    labels = np.unique(split[1], return_inverse=True)[1] * 10
    model = small().fit(split[0], labels.tolist())
    assert set(model.predict(split[2])) <= {0, 10, 20}


def test_few_dictionary_images(split):
    model = small(dictionary_images=1).fit(split[0], split[1])
    assert model.score(split[2], split[3]) > 0.8
    assert not np.array_equal(model.dictionaries_[0], small().fit(split[0], split[1]).dictionaries_[0])


def test_one_image_per_class(split):
    model = small().fit(split[0][:3], split[1][:3])
    assert model.score(split[2], split[3]) > 0.6
    np.testing.assert_allclose(model.predict_proba(split[2]).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "parameters",
    [
        {"svm": "libsvm"},
        {"pool_power": 0.5},
        {"pyramid": (1, 3)},
        {"class_weight": "balanced"},
        {"n_neighbors": None},
        {"n_neighbors": 1000},
        {"beta": (0.02, 0.5), "n_neighbors": (None, 2)},
        {"deep_atoms": (2, 1), "n_layers": 3},
        {"features": DenseSIFT(patch_size=(8, 16), step=4)},
        {"beta": 0.0},
    ],
    ids=str,
)
def test_options_work(split, parameters):
    assert small(**parameters).fit(split[0], split[1]).score(split[2], split[3]) > 0.8


class Pixels:
    """Another kind of features: grey values of 4 x 4 blocks. No `describe`, no scikit-learn."""

    def transform(self, images):
        described = []
        for image in images:
            blocks = image.reshape(8, 4, 8, 4).swapaxes(1, 2).reshape(64, 16)
            xy = np.stack(np.meshgrid(np.arange(8), np.arange(8)), axis=-1).reshape(64, 2) * 4 + 1.5
            described.append(Descriptors(blocks.astype(np.float32), xy.astype(np.float32), (32, 32)))
        return described


def test_any_object_that_transforms_images_into_descriptors(split):
    model = small(features=Pixels()).fit(split[0], split[1])
    assert model.dictionaries_[0].shape[1] == 16
    assert model.score(split[2], split[3]) > 0.5


@pytest.mark.parametrize(
    ("parameters", "argument"),
    [
        ({"n_layers": 0}, "n_layers"),
        ({"atoms_per_class": 0}, "atoms_per_class"),
        ({"atoms_per_class": 2.5}, "atoms_per_class"),
        ({"dictionary_images": 0}, "dictionary_images"),
        ({"l1_radius": 0}, "l1_radius"),
        ({"l1_radius": float("nan")}, "l1_radius"),
        ({"deep_atoms": (1, 2, 3)}, "deep_atoms"),
        ({"deep_atoms": "many"}, "deep_atoms"),
        ({"depth": "bottomless"}, "depth"),
        ({"atoms_per_class": "many"}, "atoms_per_class"),
        ({"first_order": -1}, "first_order"),
        ({"layer_weights": (1.0, 1.0)}, "residual"),
        ({"depth": "residual", "layer_weights": (1.0,)}, "layer_weights has 1 values for 2 layers"),
        ({"depth": "residual", "layer_weights": 2.0}, "one number per layer"),
        ({"depth": "residual", "layer_weights": (-1.0, 1.0)}, "layer_weights"),
        ({"depth": "residual", "layer_weights": (0.0, 0.0)}, "leave no layer"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_neighbors": (5, 5, 5)}, "n_neighbors"),
        ({"beta": -1}, "beta"),
        ({"beta": "small"}, "beta"),
        ({"pyramid": ()}, "pyramid"),
        ({"pool_power": 0}, "pool_power"),
        ({"features": "shift"}, "features"),
        ({"features": 7}, "features"),
        ({"C": 0}, "C must"),
        ({"svm": "svmlight"}, "svm"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "today"}, "random_state"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(split, parameters, argument):
    with pytest.raises(ValueError, match=argument) as caught:
        small(**parameters).fit(split[0][:6], split[1][:6])
    assert "\n" not in str(caught.value)


def test_bad_data_is_named(split):
    images, labels = split[0][:6], split[1][:6]
    with pytest.raises(ValueError, match="images"):
        small().fit([], [])
    with pytest.raises(ValueError, match="y has 5 labels for 6 images"):
        small().fit(images, labels[:5])
    with pytest.raises(ValueError, match="one class only"):
        small().fit(images, ["same"] * 6)
    with pytest.raises(ValueError, match="y is missing"):
        small().fit(images, None)
    with pytest.raises(ValueError, match="y contains NaN"):
        small().fit(images, [0, 1, 2, 0, 1, np.nan])
    with pytest.raises(ValueError, match="flat sequence"):
        small().fit(images, np.zeros((6, 2)))
    broken = images.copy()
    broken[4, 3, 3] = np.nan
    with pytest.raises(ValueError, match=r"images\[4\]"):
        small().fit(broken, labels)
    with pytest.raises(ValueError, match="class_weight|Class label|not in class"):
        small(class_weight={"nobody": 2.0}).fit(images, labels)


def test_a_missing_file_is_named(fitted, tmp_path):
    with pytest.raises(ValueError, match=r"nothing\.png"):
        fitted.predict([tmp_path / "nothing.png"])


def test_features_of_another_width_are_refused(split):
    model = small(features=Pixels()).fit(split[0], split[1])
    model.branches_[0].descriptors = DenseSIFT()
    with pytest.raises(ValueError, match="width"):
        pickle.loads(pickle.dumps(model)).predict(split[2])


def test_verbose_speaks_on_standard_error_only(split, capsys):
    small(verbose=1).fit(split[0], split[1])
    out, err = capsys.readouterr()
    assert out == ""
    assert "dictionaries" in err
    assert "coding images" in err
    small(verbose=0).fit(split[0], split[1])
    assert capsys.readouterr().err == ""


def test_images_of_no_class_are_rejected_on_request(stripes):
    """Trained on two kinds of stripes, the third kind is unknown, and so is noise."""
    images, labels = stripes
    known = labels != "aslant"
    model = DDLCNClassifier(n_layers=2, atoms_per_class=3, random_state=0).fit(images[known][:28], labels[known][:28])
    own = model.predict(images[known][28:], reject=True)
    assert np.mean(own == labels[known][28:]) > 0.7
    noise = np.random.default_rng(0).random((20, 32, 32))
    strange = model.predict(np.concatenate([images[~known], noise]), reject=True)
    assert np.mean(np.equal(strange, None)) > 0.7
    assert None not in model.predict(noise)
