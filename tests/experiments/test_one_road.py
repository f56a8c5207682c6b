"""Every experiment of the paper gives the predictions that a user of the estimators gets with the same parameters.

Of the quick form of all experiments one cell of every kind is run as `ddlcn reproduce` runs it. Beside it stands what a
person would write: draw the split, build the estimator, fit, predict. What the estimators do not offer, LLC's codes and
random filters, is written out in full: codes, pooling and SVM by numpy and scikit-learn. The runs of Omniglot are a
test set, to be looked at once: here they are made up.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, recall_score
from sklearn.svm import LinearSVC

from ddlcn import DDLCNClassifier, DenseSIFT
from ddlcn.baselines.inputs import make_input
from ddlcn.baselines.registry import find_method, find_missing, list_arguments, make_method
from ddlcn.datasets import load_dataset
from ddlcn.descriptors import sampling
from ddlcn.descriptors.pretrained import has_networks
from ddlcn.experiments import protocol, run, run_baseline
from ddlcn.experiments.catalogue import experiment_names, load_experiment, make_quick
from ddlcn.experiments.filters import FilterBank
from ddlcn.experiments.protocol import draw_split, pick_run, take_part
from ddlcn.experiments.published_code import RankedCoder
from ddlcn.experiments.run import run_settings
from ddlcn.experiments.run_baseline import run_method
from ddlcn.experiments.trained_filters import Images, make_trained_block
from ddlcn.images import name_images, read_image
from ddlcn.learning import Seeds, TrainingImages
from ddlcn.svm import SVMConfig
from tests.datasets import packing

SEED = 0
# Of the images of a quick run so many classes, and so many of each.
N_CLASSES, N_IMAGES = 3, 8


def name_kind(s):
    """What makes two cells two kinds."""
    first_order = "first order" if s.first_order else ""
    dictionary = "" if s.dictionary_images is None else "p images"
    return (s.dataset, s.depth, s.rule, s.layer, s.coder, s.measure, s.method, first_order, dictionary)


def list_cells():
    """The deepest quick cell of every kind, by the words of its kind."""
    cells = {}
    for name in experiment_names():
        for cell in make_quick(load_experiment(name)).cells:
            kind, settings = name_kind(cell.settings), cell.settings
            if kind not in cells or settings.n_layers > cells[kind].n_layers:
                cells[kind] = settings
    usual = ("augment", "clean", "dictionary", "locality", "accuracy", "")
    return {", ".join(word for word in kind if word not in usual): cell for kind, cell in cells.items()}


CELLS = list_cells()
# Vectors that several methods see: of the experiment, by the name that it gives them, and of the user.
RECALLED, VECTORS = {}, {}


def recall(name, make):
    """As the runner does it, in memory."""
    if name not in RECALLED:
        RECALLED[name] = make()
    return RECALLED[name]


@lru_cache(maxsize=1)
def load(name, root):
    try:
        return load_dataset(name, root)
    except FileNotFoundError as error:
        return str(error)


class Part:
    """The images of a quick run: names nobody needs, labels, and who learns from whom."""

    def __init__(self, data, settings):
        items, self.labels, self.is_test = take_part(pick_run(data, SEED), settings)
        self.images = [item.image for item in items]
        self.split = draw_split(settings, self.labels, self.is_test, SEED)
        self.y_train, self.y_test = self.labels[self.split.train], self.labels[self.split.test]

    def take(self, chosen):
        return [self.images[i] for i in chosen]


@pytest.fixture
def open_part(data_root, monkeypatch, tmp_path):
    monkeypatch.setattr(protocol, "QUICK_CLASSES", N_CLASSES)
    monkeypatch.setattr(protocol, "QUICK_IMAGES", N_IMAGES)
    packing.write_omniglot(tmp_path, runs=2, characters=N_CLASSES)
    packing.expect(monkeypatch, "omniglot", 2 * N_CLASSES, 4 * N_CLASSES)
    monkeypatch.setattr(sampling, "N_SAMPLED", 5_000)  # descriptors for deeper layers: a tenth
    run_baseline._open.cache_clear()

    def open_settings(settings):
        kind = dict(settings.vectors).get("kind")
        missing = "" if settings.method == "DDLCN" else find_missing(settings.method)
        if missing or (kind == "cnn" and not has_networks()):
            pytest.skip(f"{missing or 'onnxruntime'} is not installed")
        data = load(settings.dataset, tmp_path if settings.dataset == "omniglot" else None)
        if isinstance(data, str):
            pytest.skip(data)
        return data, Part(data, settings)

    return open_settings


def make_sift(s):
    sizes = s.patch_size[0] if len(s.patch_size) == 1 else s.patch_size
    return DenseSIFT(sizes, s.step, s.max_side, s.min_side if s.min_side else None, s.border)


def make_estimator(s, n_layers):
    neighbors = [s.n_neighbors] + (list(s.deep_neighbors) or [s.n_neighbors] * (n_layers - 1))
    depth = "augment" if s.depth == "published-code" else s.depth
    return DDLCNClassifier(
        make_sift(s), atoms_per_class=s.atoms_per_class, n_layers=n_layers, depth=depth,
        deep_atoms=s.deep_atoms[: n_layers - 1] if s.deep_atoms else "auto",
        layer_weights=s.layer_weights[:n_layers] if s.layer_weights else None,
        n_neighbors=tuple(neighbors[:n_layers]), beta=s.beta, first_order=s.first_order, pyramid=s.pyramid,
        pool_power=s.pool_power, C=s.C, random_state=SEED,
    )  # fmt: skip


def fit_estimator(s, part):
    """`fit` on the training images; where the protocol draws dictionary images, they go in beside them."""
    model, split = make_estimator(s, s.n_layers), part.split
    if s.dictionary_images is None and s.rule == "clean":
        return model.fit(part.take(split.train), part.y_train)
    items = list(name_images(part.images))
    own = [items[i] for i in split.dictionary], part.labels[split.dictionary]
    training = TrainingImages([items[i] for i in split.train], part.y_train, np.unique(part.labels), own)
    return model.learn(model.configure(), training, Seeds.spawn(SEED))


def code_by_llc(X, atoms, s):
    """min_z ||x - z V||^2 + beta sum_j ||x - v_j||^2 z_j^2, sum z = 1, over the nearest atoms: (n, atoms)."""
    Z = np.zeros((len(X), len(atoms)))
    # A flat patch is as far from one atom as from the next: rounding decides, so this rounds as the coder does.
    far = 0.5 * np.einsum("ij,ij->i", atoms, atoms) - X @ atoms.T
    for x, distances, z in zip(X.astype(np.float64), far, Z, strict=True):
        nearest = np.argpartition(distances, s.n_neighbors - 1)[: s.n_neighbors]
        away = atoms[nearest] - x
        C = away @ away.T
        code = np.linalg.solve(C + (s.beta + 1e-10) * np.diag(np.diag(C)) + 1e-30 * np.eye(len(C)), np.ones(len(C)))
        z[nearest] = code / code.sum()
    return Z


def make_filters(sizes, sample):
    """Random filters and a rectifier, layer upon layer; biases are mean responses to the dictionary images."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED).spawn(4)[3])
    layers = []
    for size in sizes:
        W = rng.normal(size=(sample.shape[1], size))
        W /= np.linalg.norm(W, axis=0)
        layers.append((W, (sample @ W).mean(axis=0)))
        sample = np.maximum(sample @ W - layers[-1][1], 0)

    def respond(X):
        responses = []
        for W, bias in layers:
            X = np.maximum(X @ W - bias, 0)
            responses.append(X)
        return np.hstack(responses)

    return respond


def pool(Z, described, s):
    """Largest codes of every cell of the pyramid, of unit norm."""
    height, width = described.image_shape
    pooled = []
    for n in s.pyramid:
        column = np.minimum((described.xy[:, 0] + 0.5) * n / width, n - 1).astype(int)
        row = np.minimum((described.xy[:, 1] + 0.5) * n / height, n - 1).astype(int)
        for cell in range(n * n):
            inside = Z[row * n + column == cell]
            pooled.append(inside.max(axis=0) if len(inside) else np.zeros(Z.shape[1]))
    feature = np.concatenate(pooled)
    feature = np.sign(feature) * np.abs(feature) ** s.pool_power
    return feature / np.linalg.norm(feature)


def predict_by_hand(s, part):
    """Layers that the estimators do not offer: codes, pooling and SVM in full, on the estimator's dictionaries."""
    atoms = fit_estimator(s, part).dictionaries_
    sift = make_sift(s)
    if s.layer == "filters":
        some = np.concatenate([d.values for d in sift.transform(part.take(part.split.dictionary[:200]))])
        respond = make_filters([len(each) for each in atoms], some.astype(np.float64))
    elif s.layer == "trained filters":  # their training is tested in test_trained_filters
        some = np.concatenate([d.values for d in sift.transform(part.take(part.split.dictionary[:200]))])
        seeds, n = np.random.SeedSequence(SEED).spawn(5), int(part.labels.max()) + 1
        bank = FilterBank(some, [len(each) for each in atoms], seeds[3])
        seen = Images(list(name_images(part.take(part.split.train))), part.y_train)
        svm = SVMConfig(n, s.C, "liblinear", np.ones(n))
        layers = make_trained_block(bank, sift, s.pyramid, seen, svm, seeds[4]).coder.layers

        def respond(X):
            responses = []
            for W, bias in layers:
                X = np.maximum(X @ W - bias, 0)
                responses.append(X)
            return np.hstack(responses)

    elif s.depth == "published-code":
        coder = RankedCoder(atoms)  # compared with scikit-learn's path in test_published_code

        def respond(X):
            block = coder.encode_block(X)
            Z = np.zeros((len(X), coder.n_atoms))
            for z, columns, values, count in zip(Z, block.indices, block.values, block.counts, strict=True):
                np.add.at(z, columns[:count], values[:count])
            return Z

    else:
        assert s.n_layers == 1  # a deeper one would need the paths through its layers

        def respond(X):
            return code_by_llc(X, atoms[0], s)

    def encode(chosen):
        return np.stack([pool(respond(d.values), d, s) for d in sift.transform(part.take(chosen))])

    svm = LinearSVC(C=s.C, tol=1e-8, max_iter=100_000, random_state=0)
    return svm.fit(encode(part.split.train), part.y_train).predict(encode(part.split.test))


def predict_by_method(s, part):
    """Another method of the registry, by its name, on grey pictures, on photos or on vectors."""
    method, options = find_method(s.method), dict(s.options)
    kind = dict(s.vectors).get("kind")
    images = part.images
    if kind != "cnn" and method.works_on != "photos":
        images = [np.round(255 * read_image(image, max_side=300)).astype(np.uint8) for image in images]
    train, test = ([images[i] for i in chosen] for chosen in (part.split.train, part.split.test))
    if kind is not None:
        own = {name: value for name, value in s.vectors if name != "kind"} | (
            {"features": make_sift(s)} if kind == "pyramid" else {}
        )
        key = (s.dataset, s.train_per_class, s.n_test, s.vectors, s.patch_size, s.step, s.max_side, s.min_side)
        if key not in VECTORS:
            made = make_input(kind, SEED, **own).fit(train)
            VECTORS[key] = [made.transform(side).astype(np.float32) for side in (train, test)]
        train, test = VECTORS[key]
    if "unlabelled" in options:  # a part has fewer than any experiment asks for: all
        spare = np.setdiff1d(np.flatnonzero(~part.is_test), part.split.train)
        assert len(spare) <= options["unlabelled"]
        options["unlabelled"] = [images[i] for i in spare]
    if s.method in ("ddlcn fast", "ddlcn accurate"):
        sizes = 24 if s.method == "ddlcn fast" else (16, 24, 32)
        options["features"] = DenseSIFT(sizes, 6, s.max_side, 96)
    elif method.made_by != "DDLCN":
        if method.works_on == "descriptors":
            options["features"] = make_sift(s)
        if "atoms_per_class" in list_arguments(s.method) and s.atoms_per_class != 15:
            options["atoms_per_class"] = s.atoms_per_class
    return make_method(s.method, SEED, **options).fit(train, part.y_train).predict(test)


def check_predictions(row, y_true, y_pred):
    assert row.accuracy == np.mean(y_true == y_pred)
    assert row.balanced_accuracy == pytest.approx(
        recall_score(y_true, y_pred, labels=np.unique(y_true), average="macro"), abs=1e-12
    )
    if row.settings.n_test:  # of a part of the test images no confusions are written down
        return
    confusion = confusion_matrix(y_true, y_pred, labels=np.arange(len(row.class_totals)))
    found = np.zeros_like(confusion)
    for true, predicted, count in row.mistakes:
        found[true, predicted] = count
    np.testing.assert_array_equal(found + np.diag(row.class_totals - found.sum(axis=1)), confusion)


def pick(test):
    return pytest.mark.parametrize("kind", [kind for kind, s in CELLS.items() if test(s)])


def is_changed(s):
    return s.layer != "dictionary" or s.coder == "llc" or s.depth == "published-code"


@pick(lambda s: s.method == "DDLCN" and s.measure == "accuracy" and not is_changed(s))
def test_a_cell_is_the_estimator(kind, open_part, monkeypatch):
    settings = CELLS[kind]
    data, part = open_part(settings)
    made, fit_model = [], run.fit_model
    monkeypatch.setattr(run, "fit_model", lambda *arguments: made.append(fit_model(*arguments)) or made[0])
    row = run_settings(data, settings, SEED)
    model = fit_estimator(settings, part)
    check_predictions(row, part.y_test, model.predict(part.take(part.split.test)))
    np.testing.assert_array_equal(made[0].coef_, model.coef_)  # and to the last bit
    np.testing.assert_array_equal(made[0].intercept_, model.intercept_)


@pick(lambda s: s.method == "DDLCN" and is_changed(s))
def test_a_cell_with_other_layers_is_those_written_out(kind, open_part):
    settings = CELLS[kind]
    data, part = open_part(settings)
    check_predictions(run_settings(data, settings, SEED), part.y_test, predict_by_hand(settings, part))


@pick(lambda s: s.measure == "approximation")
def test_a_cell_of_approximation_is_the_estimators(kind, open_part):
    settings = CELLS[kind]
    data, part = open_part(settings)
    test = part.split.test
    images = part.take(test[:: max(1, len(test) // 50)][:50])
    wanted = np.concatenate([d.values for d in make_sift(settings).transform(images)]).astype(np.float64)
    layers = zip(*fit_estimator(settings, part).reconstruct(images), strict=True)
    errors = [np.sum((wanted - np.concatenate(layer)) ** 2) / np.sum(wanted**2) for layer in layers]
    np.testing.assert_allclose(run_settings(data, settings, SEED).errors, errors, rtol=1e-9)


@pick(lambda s: s.measure == "time")
def test_a_cell_of_times_has_nothing_else(kind, open_part):
    settings = CELLS[kind]
    data, _ = open_part(settings)
    row = run_settings(data, settings, SEED)
    assert row.accuracy is None
    assert 0 < row.seconds_to_classify <= row.seconds_to_code < row.seconds_per_image


@pick(lambda s: s.measure == "layers")
def test_a_cell_of_layers_is_the_estimators(kind, open_part):
    settings = CELLS[kind]
    data, part = open_part(settings)
    images, y = part.take(part.split.test), part.y_test
    found = run_settings(data, settings, SEED).layers
    assert len(found) == settings.n_layers
    for n_layers in (1, 2, settings.n_layers):
        shallow = fit_estimator(replace(settings, n_layers=n_layers), part)
        features, means = shallow.transform(images).toarray().astype(np.float64), {}
        for c in np.unique(y):
            means[c] = features[y == c].mean(axis=0)
        between = sum(np.sum((means[c] - features.mean(axis=0)) ** 2) for c in y)
        within = sum(np.sum((feature - means[c]) ** 2) for feature, c in zip(features, y, strict=True))
        assert found[n_layers - 1]["separability"] == pytest.approx(between / within, rel=1e-6)


@pick(lambda s: s.method != "DDLCN")
def test_a_cell_of_another_method_is_that_method(kind, open_part):
    settings = CELLS[kind]
    data, part = open_part(settings)
    check_predictions(run_method(data, settings, SEED, recall=recall), part.y_test, predict_by_method(settings, part))


def test_no_kind_is_left_out():
    quick = [make_quick(load_experiment(name)) for name in experiment_names()]
    assert len(CELLS) == len({name_kind(cell.settings) for experiment in quick for cell in experiment.cells})
