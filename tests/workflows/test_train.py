"""Training on a person's pictures: nothing leaks, nothing is lost, and the figure is what was counted."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, DenseSIFT, load_model
from ddlcn.descriptors.pretrained import has_networks
from ddlcn.joint import JointConfig
from ddlcn.joint import choose as choosing
from ddlcn.model_selection.splits import plan_splits
from ddlcn.model_selection.tuning import tune
from ddlcn.presets import list_recipes
from ddlcn.workflows import train as train_module
from ddlcn.workflows.checkpoint import Checkpoint
from ddlcn.workflows.train import Training, prepare_model

LABELS = np.repeat(["a", "b", "c"], 12)


@pytest.mark.parametrize("one_only", [False, True])
def test_folds_cover_all_and_keep_groups_together(one_only):
    groups = np.arange(36) // 2
    splits, description = plan_splits(LABELS, groups, None, one_only, 0)
    for split in splits:
        assert np.array_equal(np.sort(np.concatenate([split.train, split.test])), np.arange(36))
        assert not set(groups[split.train]) & set(groups[split.test])
        assert set(LABELS[split.train]) == {"a", "b", "c"}
    if one_only:
        assert description == f"{len(splits[0].test)} of 36 images held out"
    else:
        assert np.array_equal(np.sort(np.concatenate([split.test for split in splits])), np.arange(36))
        assert description == "3-fold cross-validation"


def test_so_many_per_class_and_the_rest_is_tested():
    groups = np.arange(36)
    groups[1] = groups[0]
    (split,), _ = plan_splits(LABELS, groups, 5, False, 3)
    assert np.unique(LABELS[split.train], return_counts=True)[1].tolist() == [5, 5, 5]
    assert not set(groups[split.train]) & set(groups[split.test])
    assert len(split.test) >= 20
    assert plan_splits(LABELS, np.arange(36), 12, False, 0)[0] == []


@pytest.mark.parametrize(
    ("groups", "what"), [(np.arange(26), "a single picture"), (np.r_[:24, 24, 24], "one picture twice")]
)
@pytest.mark.parametrize("one_only", [False, True])
def test_a_class_of_one_picture_is_learned_from_and_the_others_are_tested(groups, what, one_only):
    labels = np.repeat(["a", "b", "c"], [12, 12, 2 if what == "one picture twice" else 1])
    groups = groups[: len(labels)]
    splits, description = plan_splits(labels, groups, None, one_only, 0)
    for split in splits:
        assert set(labels[split.train]) == {"a", "b", "c"}
        assert set(labels[split.test]) == {"a", "b"}
        assert not set(groups[split.train]) & set(groups[split.test])
    assert description.endswith("; 1 classes with a single picture not tested")
    assert len(splits) == (1 if one_only else 3)


def test_a_single_picture_that_looks_like_a_tested_one_is_not_learned_from_then():
    labels, groups = np.array(["a"] * 6 + ["b"]), np.array([0, 1, 2, 3, 4, 5, 5])
    for split in plan_splits(labels, groups, None, False, 0)[0]:
        assert not set(groups[split.train]) & set(groups[split.test])
    assert plan_splits(np.array(["a", "b"]), np.arange(2), None, False, 0)[0] == []


def test_many_images_are_held_out_once():
    labels = np.repeat(["a", "b"], 1200)
    splits, description = plan_splits(labels, np.arange(2400), None, False, 0)
    assert len(splits) == 1
    assert description == "600 of 2400 images held out"


def make_training(folder, goal, **more):
    paths = [path for path in sorted(folder.glob("*/*.png")) if path.parent.name < "digit3"]
    labels = np.array([path.parent.name for path in paths])
    model = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0)
    return Training(model, paths, labels, np.arange(len(paths)), goal, **more)


def test_a_class_with_one_picture_does_not_hide_the_accuracy_of_the_others(digit_folder, tmp_path):
    training = make_training(digit_folder, tmp_path / "m.ddlcn")
    alone = sorted((digit_folder / "digit3").iterdir())[0]
    training.paths, training.labels = [*training.paths, alone], np.append(training.labels, "digit3")
    training.groups = np.arange(len(training.paths))
    model, result = training.run()
    assert "digit3" in model.classes_
    assert result.accuracy > 0.9
    assert "digit3" not in result.y_true


def test_a_killed_training_goes_on_and_ends_the_same(digit_folder, tmp_path, monkeypatch):
    whole, result = make_training(digit_folder, tmp_path / "whole.ddlcn").run()
    assert result.accuracy > 0.9
    assert not (tmp_path / "whole.ddlcn.part").exists()

    fitted = []
    learn = DDLCNClassifier.learn

    def die_at_the_third(self, config, training, *more):
        fitted.append(len(training.items))
        if len(fitted) == 3:
            raise KeyboardInterrupt
        return learn(self, config, training, *more)

    monkeypatch.setattr(DDLCNClassifier, "learn", die_at_the_third)
    goal = tmp_path / "again.ddlcn"
    one_at_a_time = make_training(digit_folder, goal)
    one_at_a_time.model.set_params(n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        one_at_a_time.run()
    assert not goal.exists()
    assert len(json.loads((tmp_path / "again.ddlcn.part").read_text())["done"]) == 1
    fitted.extend([0, 0])  # no more dying
    training = make_training(digit_folder, goal, resume=True)
    training.model.set_params(verbose=1, n_jobs=2)  # on a terminal now, and with other threads
    again, found = training.run()
    assert len(fitted) == 8  # three before, two noted; the model's own fit and the two folds that were left
    assert found.accuracy == result.accuracy
    images = sorted(digit_folder.glob("*/1*.png"))
    assert np.array_equal(again.decision_function(images), whole.decision_function(images))
    assert not (tmp_path / "again.ddlcn.part").exists()


def test_a_killed_joint_training_goes_on_at_its_epoch(digit_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "CANDIDATES", (JointConfig(4),))
    monkeypatch.setattr(choosing, "is_surely_better", lambda *_: True)  # a few pictures are too few to tell
    goal, told = tmp_path / "m.ddlcn", []

    def make(**more):
        training = make_training(digit_folder, goal, n_per_class=6, **more)
        training.model.set_params(joint=True, n_jobs=1)
        return training

    def die_in_the_third_epoch(text):
        if "epoch 2 of 4" in text:
            raise KeyboardInterrupt

    expected, _ = make().run()
    first = make(say=die_in_the_third_epoch)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    kept = tmp_path / "m.ddlcn.epochs"
    assert len(list(kept.iterdir())) == 1
    found, _ = make(resume=True, say=told.append).run()
    assert [text.split(":")[0] for text in told if "epoch" in text][:1] == ["trying 4 epochs, mu 1, epoch 3 of 4"]
    assert not kept.exists()
    for atoms, others in zip(found.dictionaries_, expected.dictionaries_, strict=True):
        np.testing.assert_array_equal(atoms, others)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_another_training_is_not_gone_on_with(tmp_path):
    Checkpoint(tmp_path / "p", "one", False).recall("x", lambda: 1)
    assert Checkpoint(tmp_path / "p", "one", True).recall("x", lambda: 2) == 1
    with pytest.raises(ValueError, match="other images or settings"):
        Checkpoint(tmp_path / "p", "two", True)
    assert Checkpoint(tmp_path / "p", "two", False).recall("x", lambda: 2) == 2


def test_the_card_says_what_was_found(digit_folder, tmp_path):
    _, result = make_training(digit_folder, tmp_path / "m.ddlcn", n_per_class=6).run()
    model = load_model(tmp_path / "m.ddlcn")
    assert model.card_["images_per_class"] == [6, 6, 6]
    assert model.card_["accuracy"] == result.accuracy
    assert model.card_["tested"] == 30
    assert model.card_["interval"] == list(result.interval)


def test_tuning_sees_the_training_part_only(digit_folder, tmp_path, monkeypatch):
    seen = []
    real = train_module.tune

    def watch(model, images, y):
        seen.extend(images)
        return real(model, images, y, {"C": (1.0, 10.0)}, n_folds=2)

    monkeypatch.setattr(train_module, "tune", watch)
    training = make_training(digit_folder, tmp_path / "m.ddlcn", tune=True)
    model, result = training.run()
    assert model.C in (1.0, 10.0)
    (split,), _ = plan_splits(training.labels, training.groups, None, True, 0)
    assert {item.image.file for item in seen} == {training.paths[i] for i in split.train}
    assert len(result.y_true) == len(split.test)


def test_every_fit_chooses_its_recipe_on_the_images_that_it_learns_from(digit_folder, tmp_path, monkeypatch):
    training = make_training(digit_folder, tmp_path / "m.ddlcn")
    training.model = DDLCNClassifier(recipes=("fast", "drawn"), random_state=0)
    training.groups = np.arange(len(training.paths)) // 2  # pictures in pairs: one of each is looked at
    splits, _ = plan_splits(training.labels, training.groups, None, False, 0)
    looked_at = []
    real = train_module.choose_recipe

    def watch(names, parameters, images, seeds, n_jobs):
        looked_at.append([list(training.paths).index(item.image.file) for item in images.items])
        return real(names, parameters, images, seeds, n_jobs)

    monkeypatch.setattr(train_module, "choose_recipe", watch)
    model, result = training.run()
    parts = [*(set(split.train) for split in splits), set(range(len(training.paths)))]
    assert len(looked_at) == len(parts) == 4
    for places in looked_at:
        assert len(set(training.groups[places])) == len(places)
        # Those of one fit: exactly one of every pair of its part.
        assert any(set(training.groups[places]) == set(training.groups[sorted(part)]) for part in parts)
    assert re.match(r"(fast|drawn), .* on . folds of \d+ training images: ", training.recipe)
    assert model.recipes == ()
    assert model.shared_atoms == (200 if training.recipe.startswith("drawn") else 0)
    assert load_model(tmp_path / "m.ddlcn").card_["chosen"] == training.recipe
    assert result.description == "3-fold cross-validation"


def test_a_recipe_that_is_tuned_is_chosen_once(digit_folder, tmp_path, monkeypatch):
    training = make_training(digit_folder, tmp_path / "m.ddlcn", tune=True)
    training.model = DDLCNClassifier(recipes=("fast", "drawn"), random_state=0)
    monkeypatch.setattr(train_module, "tune", lambda model, images, y: tune(model, images, y, {"C": (1.0,)}, 2))
    model, _ = training.run()
    assert model.C == 1.0
    assert training.recipe.split(",")[0] in ("fast", "drawn")


def test_words_mean_models(tmp_path):
    assert prepare_model("fast", None, "", random_state=0).features.patch_size == 24
    assert prepare_model("fast", None, "sift").features.patch_size == 24
    for words in (("auto", None, ""), ("fast", None, "auto")):
        assert ("backbone" in prepare_model(*words).recipes) == has_networks()
    with pytest.raises(ValueError, match='preset "auto" chooses n_layers itself'):
        prepare_model("auto", 3, "")
    with pytest.raises(ValueError, match='preset "auto" chooses features itself'):
        prepare_model("auto", None, "cnn")
    for preset in ("", "auto"):
        assert prepare_model(preset, None, "sift").recipes == list_recipes(backbone=False)


def test_without_a_preset_it_is_auto_unless_something_is_given():
    assert prepare_model("", None, "").recipes
    assert prepare_model("", None, "", random_state=3, keep_patches=True).recipes
    assert not prepare_model("", 3, "").recipes
    assert not prepare_model("", None, "", atoms_per_class=7).recipes


def test_words_that_mean_nothing(tmp_path):
    with pytest.raises(ValueError, match="features must be 'sift', 'cnn'"):
        prepare_model("fast", None, "surf")
    with pytest.raises(FileNotFoundError if has_networks() else ModuleNotFoundError):
        prepare_model("fast", None, f"onnx:{tmp_path / 'missing.onnx'}")


def test_words_mean_networks(tmp_path):
    pytest.importorskip("onnxruntime")
    if not has_networks():
        pytest.skip("ddlcn[cnn] is not installed")
    from tests.descriptors.pretrained.tiny import write_tiny

    both = prepare_model("fast", None, "sift+cnn", random_state=0)
    assert isinstance(both.features[0][0], DenseSIFT)
    assert both.features[1] == "cnn"
    assert both.atoms_per_class == 10
    name = f"onnx:{write_tiny(tmp_path / 'a+b.onnx')}"
    assert prepare_model("paper", 1, name).features == name


def test_a_model_uses_all_threads_whatever_its_fits_had(digit_folder, tmp_path):
    """Fits run side by side with a share of the threads each; the file must not remember that share."""
    make_training(digit_folder, tmp_path / "m.ddlcn").run()
    assert load_model(tmp_path / "m.ddlcn").n_jobs is None
