"""Joint training: errors fall, atoms stay in the unit ball, threads change nothing, folds decide."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ddlcn import DDLCNClassifier, DenseSIFT, encode, load_model
from ddlcn.blocks import EncodedImages
from ddlcn.descriptors import keep_descriptors
from ddlcn.images import name_images
from ddlcn.joint import HingeLoss, JointConfig, JointProgress, JointTraining, forget
from ddlcn.joint import choose as choosing
from ddlcn.persistence.model_file import describe_model
from ddlcn.svm import SVMConfig, train

make_svm = JointTraining.make_svm
SIFT = DenseSIFT(min_side=32, patch_size=12, step=4)


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return data.images / 16, data.target


def make_model(**changes) -> DDLCNClassifier:
    settings = {"atoms_per_class": 1, "n_layers": 1, "n_neighbors": 4, "beta": 0.05, "C": 10.0, "random_state": 0}
    return DDLCNClassifier(SIFT, **{**settings, **changes})


def start(digits, n_jobs, epochs=3, **changes) -> JointTraining:
    images, y = digits[0][:150], digits[1][:150]
    items = keep_descriptors(images)
    model = make_model(**changes).fit(items, y)
    loss = HingeLoss.prepare(y, SVMConfig(10, 10.0, "liblinear", np.ones(10)))
    network = (model.branches_, model.branch_weights_, model.linear_svm_, items, loss)
    return JointTraining(*network, JointConfig(epochs), np.random.SeedSequence(0), n_jobs)


@pytest.mark.parametrize("changes", [{}, {"n_layers": 2, "depth": "residual", "deep_atoms": (6,)}], ids=["1", "2"])
def test_both_errors_fall_and_atoms_stay_in_the_unit_ball(digits, changes):
    training = start(digits, 2, epochs=6, **changes)
    branches = training.run()
    first, last = training.history[0], training.history[-1]
    assert last.classification_error < first.classification_error
    assert last.reconstruction_error < 1.2 * first.reconstruction_error
    for atoms in branches[0].dictionaries:
        assert np.linalg.norm(atoms, axis=1).max() <= 1.0 + 1e-6
    values = SIFT.transform(digits[0][:3])[0].values
    assert encode(values, branches[0].dictionaries[0], 0.05, 4).converged


def test_the_number_of_threads_changes_nothing(digits):
    one, two = (start(digits, n_jobs, epochs=1).run()[0].dictionaries[0] for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


class Stopped(Exception):
    pass


def stop_after(number):
    def tell(epoch):
        if epoch.number == number:
            raise Stopped

    return tell


@pytest.mark.parametrize("last", [1, 3])
def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(digits, tmp_path, last):
    whole = start(digits, 2, epochs=4)
    expected = whole.run()[0].dictionaries[0]
    progress = JointProgress(tmp_path / "epochs")
    with pytest.raises(Stopped):
        (first := start(digits, 2, epochs=4)).run(stop_after(last), progress.open(first.list_start()))
    told = []
    second = start(digits, 1, epochs=4)
    found = second.run(told.append, progress.open(second.list_start()))[0].dictionaries[0]
    np.testing.assert_array_equal(found, expected)
    assert [epoch.number for epoch in told] == list(range(last + 1, 5))
    assert [epoch[:3] for epoch in second.history] == [epoch[:3] for epoch in whole.history]
    np.testing.assert_array_equal(second._coef, whole._coef)


def test_the_state_of_another_training_or_half_a_file_is_not_taken(digits, tmp_path):
    progress = JointProgress(tmp_path)
    training = start(digits, 1, epochs=1)
    kept = progress.open(training.list_start())
    training.run(kept=kept)
    for other in (start(digits, 1, epochs=2), start(digits, 1, epochs=1, beta=0.06)):
        assert progress.open(other.list_start()).path != kept.path
    kept.path.write_bytes(kept.path.read_bytes()[:1000])
    assert kept.read() is None
    assert JointProgress().open([1]).read() is None


def test_only_states_are_forgotten(tmp_path):
    folder = tmp_path / "m.ddlcn.epochs"
    forget(folder)  # not there: no trouble
    JointProgress(folder).open([1]).write([np.zeros(2)])
    (folder / "mine.txt").write_text("of somebody else")
    forget(folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    forget(folder)
    assert not folder.exists()


def test_without_epochs_the_branches_stay_as_they_are(digits):
    training = start(digits, 1, epochs=0)
    before = training._branches[0].dictionaries[0]
    np.testing.assert_array_equal(training.run()[0].dictionaries[0], before)


def test_where_it_helps_the_classifier_is_better_and_travels(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "CANDIDATES", (JointConfig(8),))
    (images, y), new = (part[:400] for part in digits), slice(400, 900)
    frozen = make_model(pyramid=(1,)).fit(images, y)
    model = make_model(pyramid=(1,), joint=True).fit(images, y)
    assert model.card_["joint"].startswith("joint training, 8 epochs")
    assert np.shape(model.card_["joint_epochs"]) == (8, 2)
    assert model.score(digits[0][new], digits[1][new]) > frozen.score(digits[0][new], digits[1][new])
    model.save(tmp_path / "m.ddlcn")
    loaded = load_model(tmp_path / "m.ddlcn")
    np.testing.assert_array_equal(loaded.predict(digits[0][new]), model.predict(digits[0][new]))
    assert len(loaded.explain(digits[0][new][0]).ranking) == 10
    assert loaded.joint
    assert describe_model(tmp_path / "m.ddlcn")["joint"] == model.card_["joint"]


@pytest.mark.parametrize(
    ("n_images", "n_inside", "n_outside"), [(40, 80, 40), (2400, 4000, 2400), (30000, 4000, 20000)]
)
def test_a_third_is_held_out_and_no_more_is_learned_from_than_needed(n_images, n_inside, n_outside):
    labels = np.repeat(np.arange(3), n_images)
    inside, outside = choosing.hold_out(labels, np.random.default_rng(0))
    np.testing.assert_allclose([len(inside), len(outside)], [n_inside, n_outside], atol=3)
    assert not set(inside.tolist()) & set(outside.tolist())
    for part in (inside, outside):
        assert np.ptp(np.bincount(labels[part])) <= 1


@pytest.mark.parametrize(
    ("joint", "copies", "n_images", "n_rows", "vary"),
    [(True, 0, 60, 60, 0.0), ("varied", 0, 60, 60, 0.5), (True, 3, 60, 240, 1.0), (True, "turned", 480, 480, 0.0)],
)
def test_it_learns_from_what_the_svm_learns_from(digits, monkeypatch, joint, copies, n_images, n_rows, vary):
    monkeypatch.setattr(choosing, "CANDIDATES", (JointConfig(1),))
    made = []

    class Watched(JointTraining):
        def __init__(self, *arguments):
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(choosing, "JointTraining", Watched)
    images, y = digits[0][:90], digits[1][:90]
    monkeypatch.setattr(choosing, "is_surely_better", lambda *_: True)
    model = make_model(copies=copies, joint=joint).fit(images, y)
    items, loss, config = made[0][3:6]  # the trial, on two thirds of the images
    assert len(items) == n_images
    assert loss.signs.shape == (10, n_images)
    assert loss.penalty == pytest.approx(1.0 / (10.0 * n_rows))
    assert config.vary == vary
    assert model.score(images, y) > 0.9


@pytest.mark.parametrize("keeps_svm", [True, False])
def test_the_svm_stays_as_it_was_trained_or_is_solved_once_more(digits, monkeypatch, tmp_path, keeps_svm):
    images, y = digits[0][:200], digits[1][:200]
    choice = choosing.Choice(JointConfig(3, vary=0.5), "as told", keeps_svm)
    monkeypatch.setattr(choosing, "choose", lambda *_: choice)
    kept = []
    monkeypatch.setattr(JointTraining, "make_svm", lambda training: kept.append(make_svm(training)) or kept[-1])
    model = make_model(joint="varied").fit(images, y)
    solved = train(EncodedImages(model.encoding, list(name_images(images)), 1), y, model._svm_config(y), 1).svm
    expected = kept[0] if keeps_svm else solved
    np.testing.assert_allclose(model.coef_, expected.coef, rtol=1e-5, atol=1e-7)
    assert np.abs(solved.coef - model.coef_).max() > 0.01 or not keeps_svm
    assert model.predict_proba(images[:5]).sum(axis=1) == pytest.approx(1.0)
    model.save(tmp_path / "m.ddlcn")
    np.testing.assert_array_equal(load_model(tmp_path / "m.ddlcn").predict(images), model.predict(images))


@pytest.mark.parametrize(("joint", "n_shares"), [(True, 1), ("varied", 2)])
def test_held_out_images_choose_between_both_svms_where_images_are_bent(digits, monkeypatch, joint, n_shares):
    monkeypatch.setattr(choosing, "CANDIDATES", (JointConfig(8),))
    decided = []
    choose = choosing.choose
    monkeypatch.setattr(choosing, "choose", lambda *given: decided.append(choose(*given)) or decided[-1])
    make_model(joint=joint, pyramid=(1,)).fit(digits[0][:400], digits[1][:400])
    choice = decided[0]
    assert choice.config is not None
    shares = [float(each) for each in re.findall(r"([0-9.]+) %", choice.why.split("8 epochs, mu 1: ")[1])]
    assert len(shares) == n_shares
    assert choice.keeps_svm == (shares[-1] > shares[0])


def count_trials(digits, monkeypatch, sure) -> tuple[int, str]:
    """How many candidates are tried where `sure` says what is better, and what the card says."""
    tried = []
    monkeypatch.setattr(choosing, "CANDIDATES", (JointConfig(4), JointConfig(5), JointConfig(6)))
    monkeypatch.setattr(choosing, "is_surely_better", sure)
    run = JointTraining.run
    monkeypatch.setattr(JointTraining, "run", lambda own, *given: tried.append(own.config) or run(own, *given))
    card = make_model(joint=True, pyramid=(1,)).fit(digits[0][:400], digits[1][:400]).card_
    return len(tried) - card["joint"].startswith("joint"), card["joint"]


def test_with_too_few_mistakes_to_tell_a_gain_nothing_is_tried(digits, monkeypatch):
    n_tried, why = count_trials(digits, monkeypatch, lambda right, *_: not right.all())
    assert n_tried == 0
    assert re.fullmatch(r"frozen dictionaries: of 1\d\d held-out .* they mistake \d+, too few to tell a gain", why)


def test_a_longer_training_is_tried_only_after_a_gain_that_may_be_one(digits, monkeypatch):
    n_tried, why = count_trials(digits, monkeypatch, lambda right, *_: right.all())
    assert n_tried == 1
    assert "not clearly ahead" in why
    n_tried, why = count_trials(digits, monkeypatch, lambda *_: True)
    assert n_tried >= 2
    assert why.startswith("joint training")


def test_with_too_few_images_the_dictionaries_stay_frozen(digits):
    first = [int(np.flatnonzero(digits[1] == c)[k]) for c in range(3) for k in range(2)]
    images, y = digits[0][first], digits[1][first]
    model = make_model(joint=True).fit(images, y)
    assert "fewer than three images" in model.card_["joint"]
    np.testing.assert_array_equal(model.dictionaries_[0], make_model().fit(images, y).dictionaries_[0])


def test_another_word_is_refused_before_any_image_is_read():
    with pytest.raises(ValueError, match="joint must be True, False"):
        make_model(joint="turned").fit(["absent.png"], [0])


def test_the_paper_s_svm_is_refused_before_any_image_is_read():
    with pytest.raises(ValueError, match="liblinear"):
        make_model(joint=True, svm="libsvm").fit(["absent.png"], [0])
