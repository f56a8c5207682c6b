"""A fitted classifier as one file, without pickle: nothing is executed on load.

The file is safetensors: the arrays, and a JSON text under the metadata key "ddlcn" with the parameters, the format's
version and a checksum of everything. It is written whole: a crash leaves the old file. Older formats are read too
(`persistence.older_formats`).
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import Branch
from ddlcn.configuration import BRANCH_PARAMETERS, configure
from ddlcn.descriptors.pretrained.onnx_file import NetworkError
from ddlcn.inspection.patches import TrainingPatches
from ddlcn.persistence.branch_arrays import (
    pack_branches,
    pack_features,
    restore_tuples,
    unpack_branches,
    unpack_features,
)
from ddlcn.persistence.older_formats import upgrade
from ddlcn.svm import Calibration, KeptFeatures, LinearSVM
from ddlcn.svm.calibration import USUAL_THRESHOLD
from ddlcn.utils.files import write_whole
from ddlcn.utils.sparse_rows import make_csr

FORMAT_VERSION = 4


class ModelFileError(ValueError):
    """The file is not a model that this version can read; the message says why."""


@dataclass(frozen=True, eq=False)
class ModelParts:
    """All that makes a fitted classifier.

    Attributes
    ----------
    parameters : dict
        Of the constructor.
    classes : ndarray (n_classes,)
    branches : list of Branch; branch_weights : tuple of float
    svm : LinearSVM
    calibration : Calibration
    card : dict
        What is known about the training.
    patches : TrainingPatches or None
    kept : KeptFeatures or None
    """

    parameters: dict[str, Any]
    classes: NDArray[Any]
    branches: list[Branch]
    branch_weights: tuple[float, ...]
    svm: LinearSVM
    calibration: Calibration
    card: dict[str, Any]
    patches: TrainingPatches | None
    kept: KeptFeatures | None


def write_model(parts: ModelParts, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to `path`."""
    from safetensors.numpy import save

    arrays, header = _pack(parts)
    # safetensors scrambles arrays that are not C-contiguous without an error.
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    header = json.loads(json.dumps(header, default=_plain))
    # One key only: safetensors writes several in random order, and equal models should be equal files.
    content = save(arrays, {"ddlcn": json.dumps({**header, "checksum": _checksum(arrays, header)})})
    write_whole(path, content)


def read_model(path: str | os.PathLike[str]) -> ModelParts:
    """Read what `write_model` wrote.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, of another kind, or of a newer version.
    """
    arrays, header = _read(Path(path))
    try:
        return _unpack(arrays, header, Path(path).parent)
    except NetworkError as error:
        raise ModelFileError(f"{path} cannot be used here: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"{path} is not a complete ddlcn model ({error!r}): save it again") from None


def describe_model(path: str | os.PathLike[str]) -> dict[str, str]:
    """A model's card, in words: what it knows, how it was made, what is inside the file."""
    path = Path(path)
    arrays, header = _read(path)
    card, parameters = header["card"], header["parameters"]
    counts = card.get("images_per_class")
    classes = [str(name) for name in header["classes"]]
    described = {"model": f"{path}, format {header['format']}, {path.stat().st_size / 1e6:.1f} MB"}
    if "version" in card:
        described["made by"] = f"ddlcn {card['version']}, in {card['trained_in_seconds']:.0f} s"
    each = [f"{name} ({n})" for name, n in zip(classes, counts, strict=True)] if counts else classes
    described["classes"] = f"{len(classes)}: {', '.join(each)}"
    if counts:
        described["training images"] = f"{sum(counts)}, {min(counts)} to {max(counts)} per class"
    if "accuracy" in card:
        low, high = (100 * bound for bound in card["interval"])
        described["accuracy"] = (
            f"{100 * card['accuracy']:.1f} % ({low:.1f} to {high:.1f}) of {card['tested']} images, {card['how']}"
        )
    described |= {name: card[name] for name in ("chosen", "joint") if name in card}
    for backbone in filter(None, header["backbones"]):
        described["backbone"] = f"{backbone['name']}, sha256 {backbone['sha256']}"
    told = {name: value for name, value in parameters.items() if name not in ("n_jobs", "verbose")}
    described["settings"] = ", ".join(f"{name}={value}" for name, value in told.items())
    described["inside"] = ", ".join(f"{name} {'x'.join(map(str, a.shape))}" for name, a in sorted(arrays.items()))
    kept = len(arrays["patches.pixels"]) if "patches.pixels" in arrays else 0
    n_kept = len(arrays["kept.classes"]) if "kept.classes" in arrays else 0
    described["can learn more"] = (
        f"yes, from the features of {n_kept} images" if n_kept else "not without the old images"
    )
    described["pictures inside"] = f"{kept} patches of training images" if kept else "none"
    return described


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give the path of a file that DDLCNClassifier.save wrote")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if "ddlcn" not in metadata:
                raise ModelFileError(f"{path} is a safetensors file but not a ddlcn model")
            header: dict[str, Any] = json.loads(metadata["ddlcn"])
            version: Any = header.get("format")
            if version not in range(1, FORMAT_VERSION + 1):
                raise ModelFileError(
                    f"{path} has model format {version!r}, this version of ddlcn reads 1 to {FORMAT_VERSION}: "
                    f"load it with the ddlcn that wrote it, or update ddlcn"
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if version > 1 and header.pop("checksum", "") != _checksum(arrays, header):
                raise ModelFileError(f"{path} was altered or damaged (its checksum is wrong): save it again")
            return (arrays, header) if version == FORMAT_VERSION else upgrade(arrays, header)
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{path} is not a ddlcn model, or is damaged ({error}): save it again") from None


def _pack(parts: ModelParts) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The fitted model as named arrays and what goes into the JSON header."""
    parameters = {**parts.parameters, "features": pack_features(parts.parameters["features"])}
    # A generator that was passed as a seed means nothing in another process.
    if not isinstance(parameters["random_state"], int | None):
        parameters["random_state"] = None
    if isinstance(parameters["class_weight"], dict):
        parameters["class_weight"] = {"pairs": list(parameters["class_weight"].items())}
    arrays, backbones = pack_branches(parts.branches, parts.classes)
    header = {
        "format": FORMAT_VERSION,
        "parameters": parameters,
        "classes": parts.classes.tolist(),
        "classes_dtype": parts.classes.dtype.str,
        "temperature": parts.calibration.temperature,
        "threshold": parts.calibration.threshold,
        "card": parts.card,
        "branch_weights": list(parts.branch_weights),
        "backbones": backbones,
    }
    if parts.kept is not None:
        F = parts.kept.features
        arrays |= {"kept.data": F.data, "kept.indices": F.indices, "kept.indptr": F.indptr}
        arrays["kept.classes"] = np.searchsorted(parts.classes, parts.kept.labels).astype(np.int32)
    if parts.patches is not None:
        arrays |= {"patches.pixels": parts.patches.pixels, "patches.atoms": parts.patches.atoms}
        arrays["patches.labels"] = np.searchsorted(parts.classes, parts.patches.labels).astype(np.int32)
    return {**arrays, "coef": parts.svm.coef, "intercept": parts.svm.intercept}, header


def _unpack(arrays: dict[str, NDArray[Any]], header: dict[str, Any], folder: Path) -> ModelParts:
    """The inverse of `_pack`."""
    parameters = restore_tuples(header["parameters"])
    parameters["features"] = unpack_features(parameters["features"])
    if isinstance(parameters["class_weight"], dict):
        parameters["class_weight"] = dict(parameters["class_weight"]["pairs"])
    classes = np.array(header["classes"], dtype=np.dtype(header["classes_dtype"]))
    of_branches = {name: parameters[name] for name in BRANCH_PARAMETERS}
    config = configure(parameters["features"], of_branches, parameters["C"])
    patches = None
    if "patches.pixels" in arrays:
        pixels, atoms = arrays["patches.pixels"], arrays["patches.atoms"]
        patches = TrainingPatches(pixels, atoms, classes[arrays["patches.labels"]])
    kept = None
    if "kept.data" in arrays:
        shape = (len(arrays["kept.classes"]), arrays["coef"].shape[1])
        F = make_csr(arrays["kept.data"], arrays["kept.indices"], arrays["kept.indptr"], shape)
        kept = KeptFeatures(F, classes[arrays["kept.classes"]])
    return ModelParts(
        parameters=parameters,
        classes=classes,
        branches=unpack_branches(arrays, config, header["backbones"], classes, folder),
        branch_weights=tuple(header["branch_weights"]),
        svm=LinearSVM(arrays["coef"], arrays["intercept"], parameters["svm"] == "libsvm", len(classes)),
        calibration=Calibration(float(header["temperature"]), float(header.get("threshold", USUAL_THRESHOLD))),
        card=header["card"],
        patches=patches,
        kept=kept,
    )


def _checksum(arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> str:
    """Of the header, and of every array with its name and shape."""
    digest = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(arrays):
        digest.update(repr((name, arrays[name].shape, arrays[name].dtype.str)).encode())
        digest.update(arrays[name].data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """numpy's numbers and strings as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot save {value!r} of type {type(value).__name__} in a model file")
