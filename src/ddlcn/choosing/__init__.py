"""What is chosen on folds of the training images: a recipe, and how much each kind of descriptor counts."""

from ddlcn.choosing.branch_weights import choose_branch_weights, weigh_evenly
from ddlcn.choosing.recipe import Choice, Recipe, choose_recipe, make_recipe

__all__ = [
    "Choice",
    "Recipe",
    "choose_branch_weights",
    "choose_recipe",
    "make_recipe",
    "weigh_evenly",
]
