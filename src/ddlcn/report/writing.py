"""How numbers and settings are written: one place, so that page and summary agree to the last digit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from ddlcn.experiments.settings import Settings
from ddlcn.utils.statistics import half_interval

# Settings that `describe` writes in the paper's notation; every other is named only if it is not the default.
_IN_NOTATION = ("dataset", "train_per_class", "dictionary_images", "atoms_per_class", "n_layers", "rule", "quick")
_PLAIN_NAMES = {
    "n_neighbors": "k",
    "beta": "β",
    "patch_size": "patch",
    "max_side": "longest side",
    "min_side": "shortest side",
    "pool_power": "pooling power",
    "layer": "layer",
    "coder": "coder",
}


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over seeds; `sd` is None for a single number."""

    mean: float
    sd: float | None
    n: int

    @classmethod
    def of(cls, values: list[float]) -> Spread | None:
        """Of at least one number, else None."""
        if not values:
            return None
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), sd, len(values))

    def scaled(self, factor: float) -> Spread:
        return Spread(self.mean * factor, None if self.sd is None else self.sd * factor, self.n)

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval of the mean."""
        return half_interval(self.sd, self.n)

    def show(self, digits: int = 2) -> str:
        """ "98.92 ± 0.10"."""
        text = f"{self.mean:.{digits}f}"
        return text if self.sd is None else f"{text} ± {self.sd:.{digits}f}"


def average(values: Iterable[float | None], factor: float = 1.0) -> float | None:
    """`factor` times the mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return factor * sum(known) / len(known) if known else None


def show_difference(points: float, digits: int = 2) -> str:
    """A signed difference; a tiny one gets more digits, so that it is not shown as zero."""
    if points == 0:
        return f"{0:.{digits}f}"
    while abs(points) < 0.5 * 10.0**-digits and digits < 4:
        digits += 1
    return f"{points:+.{digits}f}".replace("-", "−")


def show_p(p: float) -> str:
    """A p-value; never "0.000"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def show_number(value: float | None, digits: int = 3) -> str:
    """Significant digits without exponents; a dash for what was not measured."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{min(places, 6)}f}"


def count(n: int, one: str, many: str = "") -> str:
    """ "1 seed", "3 seeds"."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def describe(settings: Settings, leave_out: tuple[str, ...] = ()) -> str:
    """Settings in the paper's notation, (p-q), and those that differ from the defaults; without the data set."""
    if settings.method != "DDLCN":
        return ", ".join([settings.describe_method(), f"{settings.train_per_class or 'all'} per class"])
    p = "A" if settings.dictionary_images is None else str(settings.dictionary_images)
    parts = [f"({p}-{settings.atoms_per_class})"]
    if settings.train_per_class is not None:
        parts.append(f"{settings.train_per_class} per class")
    if "n_layers" not in leave_out:
        parts.append(f"depth {settings.n_layers}")
    if "rule" not in leave_out:
        parts.append(settings.rule)
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name in (*_IN_NOTATION, *leave_out) or value == field.default:
            continue
        parts.append(f"{_PLAIN_NAMES.get(field.name, field.name)} {show_setting(value)}")
    return ", ".join(parts)


def show_setting(value: object) -> str:
    """One setting's value; None means all."""
    if value is None:
        return "all"
    if isinstance(value, tuple):
        return "+".join(str(part) for part in value)
    return str(value)


def natural_key(label: str) -> list[tuple[int, int, str]]:
    """Sort key with 5 before 15, and "A" (all) after any number."""
    words = "".join(letter if letter.isalnum() else " " for letter in label).split()
    return [(0, int(word), "") if word.isdecimal() else (1, 0, word) for word in words]
