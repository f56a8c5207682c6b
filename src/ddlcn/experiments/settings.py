"""What one run is made with: every choice that its numbers depend on, but the seed.

In: a table of a TOML file. Out: `Settings`, which can be compared, written down and hashed. Two runs with equal
settings and equal seeds are the same run, and are made once.

Stored rows leave out what is at its default. So a default never changes, and a new setting has as its default what all
runs before it were made with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ddlcn.utils.validation import check_choice

# The rules for dictionary images. `clean`: from the training images only. `published`: drawn from all images of a
# class, test images included, as the published code does.
RULES = ("clean", "published")
# Choices of "how many" for which a TOML file, which has no None, says "all".
MAY_BE_ALL = ("train_per_class", "dictionary_images", "n_neighbors")
# Settings that are tables of their own.
TABLES = ("options", "vectors")
# Settings that are real numbers, or tuples of them.
FLOATS = ("beta", "layer_weights", "pool_power", "C")


@dataclass(frozen=True)
class Settings:
    """One cell of a table, or one point of a curve.

    Attributes
    ----------
    dataset : str
        As `load_dataset` takes it.
    train_per_class : int or None
        Training images per class, t; None: the distribution's own split.
    dictionary_images : int or None
        Images per class that layer 1 is learned from, p; None: all training images ("A").
    atoms_per_class : int
        q.
    n_layers : int
    depth : "augment", "residual", or "published-code" (`ddlcn.experiments.published_code`)
        How deeper layers enter the feature.
    deep_atoms : tuple of int
        Atoms of layers 2, 3, ...; empty: "auto".
    layer_weights : tuple of float
        Of residual depth: factors on each layer's pooled codes; empty: one.
    first_order : int
        Atoms of the shared dictionary of `coding.first_order`; 0: none.
    rule : "clean" or "published"
        Where dictionary images come from.
    layer : "dictionary", "filters" or "trained filters"
        What a layer is: a dictionary and its codes, or a bank of as many filters and a rectifier, random
        (`experiments.filters`) or trained (`experiments.trained_filters`).
    coder : "locality" or "llc"
        The exact coder, or LLC's l2 form.
    n_neighbors : int or None
        None: all atoms.
    deep_neighbors : tuple of int
        The same of layers 2, 3, ...; empty: as layer 1.
    beta : float
    patch_size : tuple of int
    step : int
    max_side, min_side : int; 0 means no enlarging
    border : int
    pyramid : tuple of int
    pool_power, C : float
    method : str
        "DDLCN", or another as `baselines.registry` names it: then of the settings above only the data set, the number
        of training images and, where it is asked for, `atoms_per_class` count.
    options : tuple of (name, value)
        Of another method: arguments that differ from its own.
    vectors : tuple of (name, value)
        Of another method: `kind`, how an image becomes a vector (`ddlcn.baselines.inputs`), and arguments of that;
        empty: the method sees images.
    n_test : int
        At most this many test images, equally many of every class; 0: all.
    joint : bool or "varied"
        Whether atoms and SVM are trained together, where held-out training images say so.
    measure : "accuracy", "approximation", "layers" or "time"
        What is measured: recognition, each layer's reconstruction error, what each layer is like
        (`experiments.layers`), or times alone.
    quick : bool
        On a small part of the data: shows that everything works, and is no result.
    """

    dataset: str
    train_per_class: int | None = None
    dictionary_images: int | None = None
    atoms_per_class: int = 15
    n_layers: int = 2
    rule: str = "clean"
    layer: str = "dictionary"
    coder: str = "locality"
    n_neighbors: int | None = 15
    beta: float = 0.15
    patch_size: tuple[int, ...] = (16,)
    step: int = 6
    max_side: int = 300
    min_side: int = 0
    pool_power: float = 1.0
    C: float = 1.0
    measure: str = "accuracy"
    quick: bool = False
    depth: str = "augment"
    deep_atoms: tuple[int, ...] = ()
    layer_weights: tuple[float, ...] = ()
    border: int = 0
    first_order: int = 0
    deep_neighbors: tuple[int, ...] = ()
    pyramid: tuple[int, ...] = (1, 2, 4)
    method: str = "DDLCN"
    options: tuple[tuple[str, Any], ...] = ()
    vectors: tuple[tuple[str, Any], ...] = ()
    n_test: int = 0
    joint: bool | str = False

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        check_choice("depth", self.depth, ("augment", "residual", "published-code"))
        check_choice("layer", self.layer, ("dictionary", "filters", "trained filters"))
        check_choice("coder", self.coder, ("locality", "llc"))
        check_choice("measure", self.measure, ("accuracy", "approximation", "layers", "time"))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Settings:
        """From a table of a TOML file or a row of results; unknown names are an error."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(table) - known)
        if unknown:
            raise ValueError(f"unknown setting {unknown[0]!r}: choose from {', '.join(sorted(known))}")
        values: dict[str, Any] = {
            name: None if name in MAY_BE_ALL and value == "all" else value for name, value in table.items()
        }
        for name in ("patch_size", "deep_atoms", "layer_weights", "deep_neighbors", "pyramid"):
            if name in values:
                sizes = values[name]
                values[name] = tuple(sizes) if isinstance(sizes, list | tuple) else (sizes,)
        for name in TABLES:
            if name in values:
                values[name] = _freeze(values[name])
        return cls(**values)

    def to_table(self) -> dict[str, Any]:
        """The inverse of `from_table`, ready for JSON: the data set, and every setting that is not at its default."""
        table: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "dataset" and value == field.default:
                continue
            if field.name in MAY_BE_ALL and value is None:
                value = "all"
            elif field.name in TABLES:
                value = dict(value)
            elif field.name in FLOATS:  # 3 and 3.0 are equal, so they must be written alike
                value = [float(each) for each in value] if isinstance(value, tuple) else float(value)
            table[field.name] = value
        return table

    def list_coding(self, n_layers: int) -> tuple[tuple[float, ...], tuple[int | None, ...]]:
        """beta and k of layers 1, 2, ..., n_layers."""
        deep = self.deep_neighbors or (self.n_neighbors,) * (n_layers - 1)
        if len(deep) < n_layers - 1:
            raise ValueError(f"deep_neighbors has {len(deep)} values for {n_layers - 1} deeper layers")
        return (self.beta,) * n_layers, (self.n_neighbors, *deep[: n_layers - 1])

    def make_key(self, seed: int) -> str:
        """What a run is called in the store: a hash of its table and its seed."""
        text = json.dumps([self.to_table(), seed], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def without_depth(self) -> Settings:
        """What runs that differ in depth only have in common: the codes of layer 1, and so nearly all the work."""
        return replace(self, n_layers=1)

    @property
    def is_joint(self) -> bool:
        """Whether joint training is offered, to DDLCN's own settings or to one of its presets."""
        return bool(self.joint or dict(self.options).get("joint"))

    def describe(self) -> str:
        """In the paper's notation: (p-q), t, rule. Not the depth: runs are made for several at once."""
        if self.method != "DDLCN":
            return f"{self.dataset}, {self.train_per_class or 'all'} per class, {self.describe_method()}"
        p = "A" if self.dictionary_images is None else str(self.dictionary_images)
        t = "" if self.train_per_class is None else f", {self.train_per_class} per class"
        depth = "" if self.depth == "augment" else f", {self.depth}"
        first_order = ", first order" if self.first_order else ""
        joint = "" if not self.joint else ", joint" if self.joint is True else f", joint, {self.joint}"
        return f"{self.dataset} ({p}-{self.atoms_per_class}){t}, {self.rule}{depth}{first_order}{joint}"

    def describe_method(self) -> str:
        """Which method, and what of it is not usual."""
        kind = dict(self.vectors).get("kind", "")
        unusual = [f"{name} {value}" for name, value in (*self.options, *self.vectors) if name != "kind"]
        return ", ".join([self.method, *filter(None, [kind]), *unusual])


def _freeze(table: Any) -> tuple[tuple[str, Any], ...]:
    """A table as sorted pairs, lists in it as tuples, so that it can be hashed."""
    pairs = table.items() if isinstance(table, Mapping) else table
    return tuple(sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in pairs))
