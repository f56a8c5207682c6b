"""The choice of a recipe: on training images alone, by their looks where those say more, and told in one line."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy.special import softmax
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from ddlcn import DDLCNClassifier, load_model
from ddlcn.baselines.registry import make_method
from ddlcn.choosing.look import Impression
from ddlcn.choosing.losses import SCALES, list_losses
from ddlcn.choosing.recipe import choose_recipe, make_recipe
from ddlcn.choosing.trial import Trial
from ddlcn.images import name_images
from ddlcn.images.copies import add_copies
from ddlcn.learning import Seeds, TrainingImages
from ddlcn.presets import PARAMETERS, RECIPES, list_recipes
from ddlcn.workflows.update import update

SIFT = list_recipes(backbone=False)


def draw_letters(n_each, seed=0):
    """Three shapes in ink, each time a little different."""
    rng = np.random.default_rng(seed)
    images, labels = [], []
    for _ in range(n_each):
        for label in ("cross", "ring", "bars"):
            picture = Image.new("L", (48, 48), 255)
            pen, (x, y) = ImageDraw.Draw(picture), rng.integers(8, 14, 2).tolist()
            if label == "cross":
                pen.line((x, y, x + 24, y + 24), fill=0, width=3)
                pen.line((x + 24, y, x, y + 24), fill=0, width=3)
            elif label == "ring":
                pen.ellipse((x, y, x + 24, y + 24), outline=0, width=3)
            else:
                for i in (0, 10, 20):
                    pen.line((x, y + i, x + 24, y + i), fill=0, width=3)
            images.append(np.asarray(picture))
            labels.append(label)
    return images, np.array(labels)


def choose(images, labels, names=SIFT):
    classes, y = np.unique(labels, return_inverse=True)
    training = TrainingImages(list(name_images(images)), y, classes)
    return choose_recipe(names, DDLCNClassifier().get_params(), training, Seeds.spawn(0), 1)


def test_a_recipe_is_the_preset():
    for name in SIFT:
        recipe, model = make_recipe(name, DDLCNClassifier().get_params()), DDLCNClassifier.preset(name)
        for each in PARAMETERS:
            assert repr(recipe.parameters[each]) == repr(getattr(model, each))
        assert recipe.config.C == model.C


def test_with_a_single_image_the_looks_decide():
    choice = choose(*draw_letters(1))
    assert choice.recipe.name == "drawn"
    assert choice.accuracies == {}
    assert choice.why == ("drawn, since the images look drawn; a class has a single image, so nothing could be tried")


def see(kind, is_plain=False, has_colour=True):
    """Pretend that all pictures look so."""
    return lambda items, n_jobs: Impression(kind, is_plain, has_colour)


def test_where_the_likely_recipe_makes_mistakes_the_others_are_tried_and_told():
    """Labels at random: nothing can recognise them, so every recipe is tried."""
    images, labels = draw_letters(8)
    choice = choose(images, np.random.default_rng(0).permutation(labels), ("fast", "drawn"))
    assert set(choice.accuracies) == {"fast", "drawn"}
    assert all(accuracy < 0.7 for accuracy in choice.accuracies.values())
    assert "on 5 folds of 24 training images: drawn " in choice.why


def test_where_the_likely_recipe_makes_no_mistake_no_other_is_tried():
    choice = choose(*draw_letters(4), names=("fast", "drawn"))
    assert choice.accuracies == {"drawn": 1.0}
    assert choice.why == (
        "drawn, since the images look drawn, and it recognised at least 95 %, on 4 folds of 12 training images: "
        "drawn 100.0 %"
    )


def test_another_recipe_is_taken_where_it_is_better(monkeypatch):
    """Pretend that the images look like faces: on shapes that move about, "aligned" loses to "fast"."""
    monkeypatch.setattr("ddlcn.choosing.recipe.look_over", see("aligned"))
    rng = np.random.default_rng(0)
    images, labels = draw_letters(12)
    moved = [np.roll(image, rng.integers(-9, 10, 2), (0, 1)) for image in images]
    choice = choose(moved, labels, ("aligned", "fast"))
    assert choice.accuracies["fast"] > choice.accuracies["aligned"]
    assert choice.recipe.name == "fast"
    assert choice.why.startswith("fast, better than aligned, which the images look like, on 5 folds of 36 ")


def test_recipes_for_ink_are_tried_only_where_there_may_be_some(monkeypatch):
    images, labels = draw_letters(8)
    shuffled = np.random.default_rng(0).permutation(labels)
    for is_plain in (False, True):
        monkeypatch.setattr("ddlcn.choosing.recipe.look_over", see("aligned", is_plain))
        assert ("drawn" in choose(images, shuffled, ("aligned", "drawn")).accuracies) == is_plain


def make_blots(n_each, tint=0.0, turns=False, n_classes=3):
    """Some pictures under strong noise; tinted by class, or each time another way up."""
    scenes = [np.kron(np.random.default_rng(5 + c).random((5, 5)), np.ones((16, 16))) for c in range(n_classes)]
    rng, images, labels = np.random.default_rng(0), [], []
    for _ in range(n_each):
        for c in range(n_classes):
            scene = np.rot90(scenes[c], rng.integers(4)) if turns else scenes[0 if tint else c]
            noisy = scene[..., None] + rng.normal(0, 0.5 if tint else 0.1, (*scene.shape, 1)) + np.zeros(3)
            noisy[..., c % 3] += tint
            images.append(np.clip(0.2 + 0.6 * noisy, 0, 1))
            labels.append("abcdefgh"[c])
    return images, np.array(labels)


def test_turned_copies_are_taken_where_they_help(monkeypatch):
    """Pictures that lie any way up: learned from turned copies they are recognised."""
    monkeypatch.setattr("ddlcn.choosing.recipe.look_over", see("photo"))
    choice = choose(*make_blots(3, turns=True, n_classes=8), ("photo", "turned"))
    assert choice.accuracies["turned"] > choice.accuracies["photo"]
    assert choice.recipe.name == "turned"
    assert choice.recipe.parameters["copies"] == "turned"


def test_grey_pictures_are_not_tried_in_colour(monkeypatch):
    images, labels = make_blots(5)
    shuffled = np.random.default_rng(0).permutation(labels)  # so that there are mistakes
    for has_colour in (False, True):
        monkeypatch.setattr("ddlcn.choosing.recipe.look_over", see("photo", has_colour=has_colour))
        choice = choose(images, shuffled, ("photo", "colour"))
        assert set(choice.accuracies) == ({"photo", "colour"} if has_colour else {"photo"})
        assert ("no other is made for them" in choice.why) != has_colour


def test_a_trial_is_what_a_classifier_would_say():
    """`Trial.decide` against the obvious: features by the encoder, an SVM a fold, copies never on both sides."""
    images, labels = make_blots(4)
    classes, y = np.unique(labels, return_inverse=True)
    recipe = make_recipe("turned", DDLCNClassifier().get_params(), trial=True)
    training = TrainingImages(list(name_images(images)), y, classes)
    trial = Trial(training, np.arange(len(y)), Seeds.spawn(0), 1)
    decided = trial.decide(recipe.config, recipe.parameters)
    assert trial.n_folds == 4

    model = DDLCNClassifier(**recipe.parameters, random_state=0)
    encoder = clone(model).fit(images, y)
    expected = np.empty((len(y), 3))
    for inside, outside in StratifiedKFold(4, shuffle=True, random_state=0).split(y, y):
        seen = add_copies([training.items[i] for i in inside], "turned", np.random.SeedSequence(0))
        features = encoder.transform([item.image for item in seen])
        svm = LinearSVC(C=model.C, intercept_scaling=1.0, tol=1e-8, max_iter=100000).fit(
            features, np.repeat(y[inside], 8)
        )
        expected[outside] = svm.decision_function(encoder.transform([images[i] for i in outside]))
    np.testing.assert_allclose(decided, expected, atol=1e-3)


def test_the_loss_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(0.0, 0.2, (20, 3)), rng.integers(0, 3, 20)
    for scale, loss in zip(SCALES, list_losses(logits, y), strict=True):
        assert loss == pytest.approx(log_loss(y, softmax(scale * logits, axis=1), normalize=False))
    counts = rng.random(20)
    by_hand = [log_loss(y, softmax(scale * logits, axis=1), normalize=False, sample_weight=counts) for scale in SCALES]
    np.testing.assert_allclose(list_losses(logits, y, counts), by_hand)


def test_of_one_recipe_there_is_no_choice():
    assert choose(*draw_letters(2), names=("fast",)).recipe.name == "fast"


def test_the_same_choice_twice():
    images, labels = draw_letters(3)
    assert (
        choose(images, labels, ("fast", "aligned")).accuracies == choose(images, labels, ("fast", "aligned")).accuracies
    )


def test_auto_is_a_classifier_like_any_other(tmp_path):
    images, labels = draw_letters(3)
    model = DDLCNClassifier.preset("auto", random_state=0, recipes=("fast", "drawn"), keep_features=True)
    assert model.fit(images, labels) is model
    new, expected = draw_letters(5, seed=1)
    assert model.score(new, expected) > 0.9
    name = model.card_["chosen"].split(",")[0]
    plain = DDLCNClassifier.preset(name, random_state=0).fit(images, labels)
    np.testing.assert_array_equal(plain.decision_function(new), model.decision_function(new))
    assert model.recipes == ("fast", "drawn")  # what was asked for stays
    assert model.parameters_["recipes"] == ()
    assert model.parameters_["C"] == plain.C

    model.save(tmp_path / "m.ddlcn")
    found = load_model(tmp_path / "m.ddlcn")
    np.testing.assert_array_equal(found.decision_function(new), model.decision_function(new))
    assert found.C == plain.C
    assert found.card_["chosen"] == model.card_["chosen"]
    for one in (model, found):
        assert update(one, new, expected).score(images, labels) > 0.9


def test_the_method_of_the_tables_has_every_recipe_but_the_backbone():
    assert make_method("ddlcn auto", 0).recipes == SIFT


def test_what_auto_chooses_cannot_be_given():
    for given in ({"C": 3.0}, {"copies": 2}, {"features": "sift"}, {"n_layers": 3}, {"pyramid": (1,)}):
        with pytest.raises(ValueError, match=f'preset "auto" chooses {next(iter(given))} itself'):
            DDLCNClassifier.preset("auto", **given)
    assert DDLCNClassifier.preset("auto", class_weight="balanced").class_weight == "balanced"
    assert set(list_recipes(backbone=True)) == set(RECIPES)
