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


def test_settings_that_came_later_do_not_rename_older_runs():
    assert "depth" not in Settings("mnist").to_table()
    assert Settings("mnist").make_key(0) == "459124c382d6e4d4f5fb2235"
    residual = Settings("mnist", depth="residual", deep_atoms=(32, 16))
    assert Settings.from_table(residual.to_table()) == residual
    assert residual.make_key(0) != Settings("mnist").make_key(0)


def test_neighbours_of_deeper_layers():
    assert Settings("mnist", n_neighbors=5, beta=0.1).list_coding(3) == ((0.1,) * 3, (5, 5, 5))
    settings = Settings("mnist", n_neighbors=5, deep_neighbors=(3, 2), depth="residual")
    assert settings.list_coding(3)[1] == (5, 3, 2)
    assert settings.list_coding(2)[1] == (5, 3)
    with pytest.raises(ValueError, match="deep_neighbors has 2 values for 3"):
        settings.list_coding(4)
    assert Settings.from_table(settings.to_table()) == settings
