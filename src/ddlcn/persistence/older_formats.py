"""Model files of formats 1 to 3 as those of today: other names, the same content.

Formats: 1 (ddlcn 0.1.0); 2 added the checksum, the threshold for unknown images, what is known about the training, the
class that an atom was learned from and, if asked for, features and patches of training images; 3 added backbones' maps
and several kinds of descriptors; 4 has the parameters in the order and with the names of today.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Parameters that have another name now; those that are gone; those that came later, at what models did before.
RENAMED = {"tangents": "first_order"}
GONE = ("engine", "per_features")
ADDED = {"shared_atoms": 0, "recipes": (), "copies": 0, "joint": False}
# Arrays that have another name now: (beginning, end) of the name.
RENAMED_ARRAYS = (("tangents", "first_order"), ("whole_share", "global_weight"))


def upgrade(arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and header of format 1, 2 or 3 as of format 4."""
    header, given = dict(header), dict(header["parameters"])
    own = [_rename(each) for each in given.get("per_features") or []]
    packed = given["features"]
    if isinstance(packed, dict) and "several" in packed:
        own = own or [{} for _ in packed["several"]]
        pairs = zip(packed["several"], own, strict=True)
        given["features"] = {"several": [{"features": each, "parameters": more} for each, more in pairs]}
    header["parameters"] = ADDED | _rename(given)
    header["branch_weights"] = header.get("shares", [1.0])
    header["backbones"] = header.get("networks", [])
    card = dict(header.get("card", {}))
    if "mean_over_classes" in card:
        card["balanced_accuracy"] = card.pop("mean_over_classes")
    header["card"] = card
    renamed = {}
    for name, array in arrays.items():
        for old, new in RENAMED_ARRAYS:
            name = name.replace(old, new)
        renamed[name] = array
    if "atom_classes" not in renamed:  # format 1 did not say it
        n_classes = len(header["classes"])
        each = len(renamed["dictionary1"]) // n_classes
        renamed["atom_classes"] = np.repeat(np.arange(n_classes, dtype=np.int32), each)
    return renamed, header


def _rename(parameters: dict[str, Any]) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in parameters.items() if name not in GONE}
