"""Class-wise layer 1, the deeper layers, and how many atoms they get."""

import numpy as np
import pytest

from ddlcn.dictionaries import learn_deep_layers, learn_dictionary, learn_layer1, resolve_deep_atoms


@pytest.fixture(scope="module")
def classes():
    """Three classes with descriptors of their own, the last with fewer descriptors than atoms."""
    rng = np.random.default_rng(0)
    made = []
    for centre, n in zip(rng.random((3, 16)), (400, 300, 3), strict=True):
        X = np.abs(centre + 0.3 * rng.standard_normal((n, 16)))
        made.append((X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32))
    return made


def test_layer1_is_stacked_class_by_class(classes):
    atoms = learn_layer1(classes, 5, 0.35, random_state=0, n_jobs=1)
    assert atoms.shape == (15, 16)
    assert atoms.dtype == np.float32
    assert np.isfinite(atoms).all()
    assert np.linalg.norm(atoms, axis=1).max() <= 1 + 1e-6
    first_seed = np.random.SeedSequence(0).spawn(3)[0]
    alone = learn_dictionary(classes[0], 5, 0.35, random_state=first_seed).atoms
    np.testing.assert_array_equal(atoms[:5], alone)


@pytest.mark.parametrize("n_jobs", [2, 3, None])
def test_layer1_does_not_depend_on_n_jobs(classes, n_jobs):
    one = learn_layer1(classes, 5, random_state=7, n_jobs=1)
    np.testing.assert_array_equal(one, learn_layer1(classes, 5, random_state=7, n_jobs=n_jobs))


def test_layer1_gives_equal_classes_different_seeds(classes):
    atoms = learn_layer1([classes[0], classes[0]], 5, random_state=0, max_iter=1)
    assert not np.array_equal(atoms[:5], atoms[5:])


def test_deep_layers_are_learned_on_the_atoms_below(classes):
    layer1 = learn_layer1(classes, 5, random_state=0)
    before = layer1.copy()
    layers = learn_deep_layers(layer1, (6, 2), 0.35, random_state=0)
    assert [layer.shape for layer in layers] == [(6, 16), (2, 16)]
    np.testing.assert_array_equal(layer1, before)
    second = np.random.SeedSequence(0).spawn(2)[1]
    np.testing.assert_array_equal(layers[1], learn_dictionary(layers[0], 2, 0.35, random_state=second).atoms)
    again = learn_deep_layers(layer1, (6, 2), 0.35, random_state=0)
    assert all(np.array_equal(one, other) for one, other in zip(layers, again, strict=True))
    assert learn_deep_layers(layer1, (), random_state=0) == []


@pytest.mark.parametrize(
    ("deep_atoms", "n_layers", "n_layer1", "expected"),
    [
        ("auto", 1, 100, ()),
        ("auto", 2, 100, (32,)),
        ("auto", 2, 20, (20,)),
        ("auto", 4, 570, (32, 16, 8)),
        ("auto", 9, 570, (32, 16, 8, 4, 2, 1, 1, 1)),
        ("auto", 3, 1, (1, 1)),
        ((), 1, 10, ()),
        ((64, 64), 3, 64, (64, 64)),
        ([np.int64(5)], 2, 10, (5,)),
    ],
)
def test_resolve_deep_atoms(deep_atoms, n_layers, n_layer1, expected):
    assert resolve_deep_atoms(deep_atoms, n_layers, n_layer1) == expected


@pytest.mark.parametrize(
    ("deep_atoms", "n_layers", "n_layer1", "expected"),
    [("auto", 1, 10, ()), ("auto", 3, 570, (32, 32)), ("auto", 3, 20, (20, 20)), ((64, 128), 3, 10, (64, 128))],
)
def test_residual_layers_may_have_any_number_of_atoms(deep_atoms, n_layers, n_layer1, expected):
    assert resolve_deep_atoms(deep_atoms, n_layers, n_layer1, "residual") == expected


@pytest.mark.parametrize(
    ("deep_atoms", "n_layers", "message"),
    [
        ("many", 2, "deep_atoms must be 'auto' or one number per deeper layer, as in .32, 16.; got 'many'"),
        (32, 2, "deep_atoms must be 'auto' or one number per deeper layer"),
        ((8,), 3, "deep_atoms has 1 numbers where n_layers=3 needs 2: pass one per layer above the first"),
        ((8, 4), 2, "deep_atoms has 2 numbers where n_layers=2 needs 1"),
        ((0,), 2, "deep_atoms for layer 2 must be a whole number of at least 1; got 0"),
        ((8, 2.5), 3, "deep_atoms for layer 3 must be a whole number"),
        (
            (11,),
            2,
            "deep_atoms asks for 11 atoms in layer 2, but the layer below has only 10: pass at most 10",
        ),
        ((4, 5), 3, "deep_atoms asks for 5 atoms in layer 3, but the layer below has only 4"),
        ("auto", 0, "n_layers must be a whole number of at least 1"),
    ],
)
def test_resolve_deep_atoms_names_what_is_wrong(deep_atoms, n_layers, message):
    with pytest.raises(ValueError, match=message):
        resolve_deep_atoms(deep_atoms, n_layers, 10)


def test_bad_layer_input_is_named(classes):
    with pytest.raises(ValueError, match="descriptors_by_class is empty: pass one array of descriptors for each"):
        learn_layer1([], 5)
    with pytest.raises(ValueError, match="descriptors_by_class.1. has rows of width 4 where 16 is needed"):
        learn_layer1([classes[0], np.ones((3, 4))], 5)
    with pytest.raises(ValueError, match="descriptors_by_class.1. is empty"):
        learn_layer1([classes[0], np.ones((0, 16))], 5)
    with pytest.raises(ValueError, match="atoms_per_class must be a whole number of at least 1"):
        learn_layer1(classes, 0)
    with pytest.raises(ValueError, match="l1_radius must be a number above 0"):
        learn_layer1(classes, 5, -1.0)
    with pytest.raises(ValueError, match="n_jobs must be a whole number other than 0"):
        learn_layer1(classes, 5, n_jobs=0)
    with pytest.raises(ValueError, match="layer1_atoms contains NaN"):
        learn_deep_layers([[np.nan]], (1,))
    with pytest.raises(ValueError, match="n_atoms_per_layer must be a whole number of at least 1; got 0"):
        learn_deep_layers(np.ones((3, 2)), (0,))
