"""A fitted classifier as one file, without pickle: nothing is executed on load.

The file is safetensors: the arrays, and a JSON text under the metadata key "ddlcn" with the parameters, the format's
version and a checksum of everything. It is written beside its goal and moved there when complete, so a crash leaves the
old file.

Formats: 1 (ddlcn 0.1.0); 2 adds the checksum, the threshold for unknown images, what is known about the training, which
class an atom was learned from and, if asked for, features and patches of training images; 3 adds networks' maps and
several kinds of descriptors.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ddlcn._sparse import make_csr
from ddlcn.branch_file import pack_branches, pack_features, unpack_branches, unpack_features
from ddlcn.features.pretrained.onnx_file import NetworkError

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier

FORMAT_VERSION = 3


class ModelFileError(ValueError):
    """The file is not a model that this version can read; the message says why."""


def save_model(model: DDLCNClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to `path`."""
    from safetensors.numpy import save

    arrays, header = _pack(model)
    # safetensors scrambles arrays that are not C-contiguous without a word.
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    header = json.loads(json.dumps(header, default=_plain))
    # One key only: safetensors writes several in random order, and equal models should be equal files.
    content = save(arrays, {"ddlcn": json.dumps({**header, "checksum": _checksum(arrays, header)})})
    goal = Path(path)
    beside = goal.with_name(f".{goal.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, goal)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def load_model(path: str | os.PathLike[str]) -> DDLCNClassifier:
    """Read a classifier that `DDLCNClassifier.save` wrote.

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
    card, parameters = header.get("card", {}), header["parameters"]
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
    for network in filter(None, header.get("networks", [])):
        described["network"] = f"{network['name']}, sha256 {network['sha256']}"
    told = {name: value for name, value in parameters.items() if name not in ("n_jobs", "verbose", "engine")}
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
            return arrays, header
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{path} is not a ddlcn model, or is damaged ({error}): save it again") from None


def _pack(model: DDLCNClassifier) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The fitted model as named arrays and what goes into the JSON header."""
    parameters = model.get_params(deep=False)
    parameters["features"] = pack_features(model.features)
    # A generator that was passed as a seed means nothing in another process.
    if not isinstance(model.random_state, int | None):
        parameters["random_state"] = None
    if isinstance(model.class_weight, dict):
        parameters["class_weight"] = {"pairs": list(model.class_weight.items())}
    calibration = model._calibrator.find(model.n_jobs)
    arrays, networks = pack_branches(model.branches_, model.classes_)
    header = {
        "format": FORMAT_VERSION,
        "parameters": parameters,
        "classes": model.classes_.tolist(),
        "classes_dtype": model.classes_.dtype.str,
        "temperature": calibration.temperature,
        "threshold": calibration.threshold,
        "card": model.card_,
        "shares": list(model.shares_),
        "networks": networks,
    }
    if model.kept_ is not None:
        F = model.kept_.features
        parts = {"data": F.data, "indices": F.indices, "indptr": F.indptr}
        parts["classes"] = np.searchsorted(model.classes_, model.kept_.labels).astype(np.int32)
        arrays |= {f"kept.{name}": part for name, part in parts.items()}
    if model.patches_ is not None:
        of_patches = np.searchsorted(model.classes_, model.patches_.labels).astype(np.int32)
        arrays |= {f"patches.{name}": part for name, part in vars(model.patches_).items()} | {
            "patches.labels": of_patches
        }
    return {**arrays, "coef": model.coef_, "intercept": model.intercept_}, header


def _unpack(arrays: dict[str, NDArray[Any]], header: dict[str, Any], folder: Path) -> DDLCNClassifier:
    """The inverse of `_pack`."""
    from ddlcn.calibration import USUAL_THRESHOLD, Calibration
    from ddlcn.classifier import DDLCNClassifier
    from ddlcn.growing import KeptFeatures
    from ddlcn.patches import TrainingPatches
    from ddlcn.svm import LinearSVM

    parameters = _with_tuples(header["parameters"])
    parameters["features"] = unpack_features(parameters["features"])
    if isinstance(parameters["class_weight"], dict):
        parameters["class_weight"] = dict(parameters["class_weight"]["pairs"])
    classes = np.array(header["classes"], dtype=np.dtype(header["classes_dtype"]))
    changes = [_with_tuples(each) for each in parameters.get("per_features") or [{}]]
    parameters["per_features"] = changes if parameters.get("per_features") else None
    n_each = [each.get("n_layers", parameters["n_layers"]) for each in changes]
    n_layers = n_each if parameters["per_features"] else n_each * max(1, len(header.get("networks", [])))
    what = (parameters["features"], n_layers, header.get("networks", []), classes, folder)
    branches = unpack_branches(arrays, *what)
    shares = tuple(header.get("shares", (1.0,)))
    machine = LinearSVM(arrays["coef"], arrays["intercept"], parameters["svm"] == "libsvm", len(classes))
    calibration = Calibration(float(header["temperature"]), float(header.get("threshold", USUAL_THRESHOLD)))
    patches = None
    if "patches.pixels" in arrays:
        pixels, atoms = arrays["patches.pixels"], arrays["patches.atoms"]
        patches = TrainingPatches(pixels, atoms, classes[arrays["patches.labels"]])
    kept = None
    if "kept.data" in arrays:
        shape = (len(arrays["kept.classes"]), arrays["coef"].shape[1])
        F = make_csr(arrays["kept.data"], arrays["kept.indices"], arrays["kept.indptr"], shape)
        kept = KeptFeatures(F, classes[arrays["kept.classes"]])
    rest = (calibration, header.get("card", {}), patches, kept)
    return DDLCNClassifier._restore(parameters, classes, branches, shares, machine, *rest)


def _checksum(arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> str:
    """Of the header, and of every array with its name and shape."""
    digest = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(arrays):
        digest.update(repr((name, arrays[name].shape, arrays[name].dtype.str)).encode())
        digest.update(arrays[name].data)
    return digest.hexdigest()


def _with_tuples(parameters: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples: lists become tuples again."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}


def _plain(value: Any) -> Any:
    """numpy's numbers and strings as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot save {value!r} of type {type(value).__name__} in a model file")
