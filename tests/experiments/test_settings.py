"""Settings: what makes two runs the same run."""

from dataclasses import fields, replace

import pytest

from ddlcn.experiments.settings import Settings

PLAIN = Settings("yaleb", 32)


def test_written_down_and_read_again():
    for settings in (PLAIN, Settings("mnist", None, 100, n_neighbors=None, patch_size=(12, 16))):
        assert Settings.from_table(settings.to_table()) == settings


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_every_setting_makes_another_key(name):
    value = getattr(PLAIN, name)
    other = {
        "rule": "published",
        "layer": "filters",
        "coder": "llc",
        "measure": "approximation",
        "patch_size": (12,),
        "dataset": "ar",
        "quick": True,
        "depth": "residual",
        "deep_atoms": (32,),
        "layer_weights": (0.0, 1.0),
        "options": (("C", 2.0),),
        "vectors": (("kind", "pixels"),),
    }.get(name, 7 if value is None else value + 1 if not isinstance(value, str | tuple | bool) else None)
    assert replace(PLAIN, **{name: other}).make_key(0) != PLAIN.make_key(0)


def test_the_seed_makes_another_key():
    assert PLAIN.make_key(0) != PLAIN.make_key(1)
    assert PLAIN.make_key(0) == Settings("yaleb", 32).make_key(0)


@pytest.mark.parametrize(
    ("table", "named"),
    [({"dataset": "ar", "atoms": 3}, "atoms"), ({"dataset": "ar", "rule": "dirty"}, "rule")],
)
def test_what_is_unknown_is_named(table, named):
    with pytest.raises(ValueError, match=named):
        Settings.from_table(table)


def test_what_is_at_its_default_is_left_out():
    assert Settings("mnist").to_table() == {"dataset": "mnist"}
    assert Settings("mnist", n_neighbors=None, n_layers=2).to_table() == {"dataset": "mnist", "n_neighbors": "all"}
    residual = Settings("mnist", depth="residual", deep_atoms=(32, 16))
    assert residual.to_table() == {"dataset": "mnist", "depth": "residual", "deep_atoms": (32, 16)}
    assert Settings.from_table(residual.to_table()) == residual


def test_equal_settings_have_equal_keys():
    for whole, real in ((1, 1.0), (3, 3.0)):
        assert Settings("ar", C=whole).make_key(0) == Settings("ar", C=real).make_key(0)
    assert Settings("ar", layer_weights=(0, 1)).make_key(0) == Settings("ar", layer_weights=(0.0, 1.0)).make_key(0)


def test_stored_rows_rely_on_these_defaults():
    # A row in docs/results leaves out what is at its default: to change one of these is to change those rows.
    defaults = {
        "train_per_class": None, "dictionary_images": None, "atoms_per_class": 15, "n_layers": 2, "rule": "clean",
        "layer": "dictionary", "coder": "locality", "n_neighbors": 15, "beta": 0.15, "patch_size": (16,), "step": 6,
        "max_side": 300, "min_side": 0, "pool_power": 1.0, "C": 1.0, "measure": "accuracy", "quick": False,
        "depth": "augment", "deep_atoms": (), "layer_weights": (), "border": 0, "first_order": 0, "deep_neighbors": (),
        "pyramid": (1, 2, 4), "method": "DDLCN", "options": (), "vectors": (), "n_test": 0,
    }  # fmt: skip
    settings = Settings("mnist")
    assert {name: getattr(settings, name) for name in defaults} == defaults


def test_neighbours_of_deeper_layers():
    assert Settings("mnist", n_neighbors=5, beta=0.1).list_coding(3) == ((0.1,) * 3, (5, 5, 5))
    settings = Settings("mnist", n_neighbors=5, deep_neighbors=(3, 2), depth="residual")
    assert settings.list_coding(3)[1] == (5, 3, 2)
    assert settings.list_coding(2)[1] == (5, 3)
    with pytest.raises(ValueError, match="deep_neighbors has 2 values for 3"):
        settings.list_coding(4)
    assert Settings.from_table(settings.to_table()) == settings
