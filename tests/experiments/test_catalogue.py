"""The paper's tables as data."""

import pytest

from ddlcn.baselines.registry import make_method
from ddlcn.experiments.catalogue import experiment_names, leave_out_missing, load_experiment, make_quick
from ddlcn.experiments.run_baseline import _list_options


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_can_be_read(name):
    experiment = load_experiment(name)
    places = [(cell.row, cell.column) for cell in experiment.cells]
    assert len(set(places)) == len(places)
    assert len({(cell.settings, cell.over) for cell in experiment.cells}) == len(places)
    given = [(cell.settings.measure, cell.published) for cell in experiment.cells if cell.published is not None]
    assert all(number.is_time == (measure == "time") for measure, number in given)
    assert all(number.is_time or 20 < number.value <= 100 for _, number in given)
    names = {name for place in places for name in place}
    assert all(a in names and b in names for a, b in experiment.compare)
    if experiment.kind == "curve":
        assert hasattr(experiment.cells[0].settings, experiment.x)


@pytest.mark.parametrize("name", experiment_names())
def test_a_quick_look_is_small_and_marked(name):
    quick = make_quick(load_experiment(name))
    assert 1 <= len(quick.cells) <= 12
    assert all(cell.settings.quick and cell.seeds == 1 and cell.published is None for cell in quick.cells)
    assert "not the result" in quick.title


@pytest.mark.parametrize("name", experiment_names())
def test_every_method_of_a_cell_takes_its_options(name):
    experiment = load_experiment(name)
    for cells in (experiment.cells, make_quick(experiment).cells):
        for cell in cells:
            if cell.settings.method != "DDLCN":
                options = _list_options(cell.settings)
                assert make_method(cell.settings.method, 0, **options).get_params().items() >= options.items()


def test_methods_that_need_what_is_not_there_are_left_out(monkeypatch):
    monkeypatch.setattr("ddlcn.baselines.registry.find_spec", lambda name: None)
    contest = load_experiment("contest")
    kept, missing = leave_out_missing(contest)
    assert missing == {"HOG + SVM": "skimage", "small CNN": "torch"}
    assert len(contest.cells) - len(kept.cells) == 2 * (6 + 5 + 6 + 6)


def test_the_paper_is_covered():
    assert {"yaleb", "ar", "caltech101", "caltech256", "mnist", "coder", "approximation"} <= set(experiment_names())


def test_unknown_names_and_broken_files_are_said(tmp_path):
    with pytest.raises(ValueError, match="'yale'.*yaleb"):
        load_experiment("yale")
    with pytest.raises(ValueError, match="does not exist"):
        load_experiment(str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_text("cells = [")
    with pytest.raises(ValueError, match="mine.toml is not a TOML file"):
        load_experiment(str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_text('title = "x"')
    with pytest.raises(ValueError, match="no 'cells'"):
        load_experiment(str(tmp_path / "mine.toml"))
