"""Checks of arguments: one sentence each, naming the argument."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.utils.validation import check_choice, check_count, check_matrix, check_number, seed_sequence


@pytest.mark.parametrize(
    "value",
    [np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(3), np.zeros((1, 2, 3)), [[1, np.nan]], [[np.inf]], [["a"]]],
    ids=str,
)
def test_bad_matrices(value):
    with pytest.raises(ValueError, match="D ") as caught:
        check_matrix("D", value, "atom")
    assert "\n" not in str(caught.value)


def test_a_matrix_of_another_width_names_both():
    with pytest.raises(ValueError, match="width 3 where 4"):
        check_matrix("X", np.zeros((2, 3)), "descriptor", n_columns=4)


def test_matrices_keep_float_types_and_become_contiguous():
    assert check_matrix("X", np.zeros((2, 3), np.float32), "row").dtype == np.float32
    assert check_matrix("X", np.zeros((2, 3), np.float16), "row").dtype == np.float64
    assert check_matrix("X", [[1, 2]], "row").dtype == np.float64
    assert check_matrix("X", np.zeros((3, 2)).T, "row").flags.c_contiguous
    X = np.ones((2, 3))
    assert check_matrix("X", X, "row") is X


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", None, True, np.float64(2)])
def test_bad_counts(value):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        check_count("n", value)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "1", None, True, 1j])
def test_bad_numbers(value):
    with pytest.raises(ValueError, match="x must be a number of at least 0"):
        check_number("x", value)


def test_good_values_pass():
    assert check_count("n", np.int64(3)) == 3
    assert check_number("x", np.float32(0.5)) == 0.5
    assert check_number("x", 0) == 0.0
    assert check_choice("c", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="above 0"):
        check_number("x", 0, above=True)
    with pytest.raises(ValueError, match="c must be one of 'a', 'b'; got 'd'"):
        check_choice("c", "d", ("a", "b"))


def test_seeds():
    assert seed_sequence(5).entropy == 5
    for wrong in (-1, 1.5, "x"):
        with pytest.raises(ValueError, match="random_state"):
            seed_sequence(wrong)
