"""A fitted classifier as one file, without pickle: nothing is executed on load.

The file is safetensors: the arrays, and a JSON text under the metadata key "ddlcn" with the parameters and the format's
version. It is written beside its goal and moved there when complete, so a crash leaves the old file.
"""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier

FORMAT_VERSION = 1


class ModelFileError(ValueError):
    """The file is not a model that this version can read; the message says why."""


def save_model(model: DDLCNClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to `path`."""
    from safetensors.numpy import save

    arrays, header = _pack(model)
    # safetensors scrambles arrays that are not C-contiguous without a word.
    content = save(
        {name: np.ascontiguousarray(a) for name, a in arrays.items()},
        {"ddlcn": json.dumps(header, default=_plain)},
    )
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
    if header.get("format") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has model format {header.get('format')!r}, this version of ddlcn reads {FORMAT_VERSION}: "
            f"load it with the ddlcn that wrote it, or update ddlcn"
        )
    try:
        return _unpack(arrays, header)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"{path} is not a complete ddlcn model ({error!r}): save it again") from None


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give the path of a file that DDLCNClassifier.save wrote")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if "ddlcn" not in metadata:
                raise ModelFileError(f"{path} is a safetensors file but not a ddlcn model")
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(metadata["ddlcn"])  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{path} is not a ddlcn model, or is damaged ({error}): save it again") from None


def _pack(model: DDLCNClassifier) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The fitted model as named arrays and what goes into the JSON header."""
    from ddlcn.features import DenseSIFT

    parameters = model.get_params(deep=False)
    if type(model.features) is DenseSIFT:
        parameters["features"] = {"DenseSIFT": model.features.get_params()}
    elif not isinstance(model.features, str):
        raise ValueError(
            f"a model with features={model.features!r} cannot be saved to a file, since loading must not execute "
            f"foreign code: use pickle or joblib for it"
        )
    # A generator that was passed as a seed means nothing in another process.
    if not isinstance(model.random_state, int | None):
        parameters["random_state"] = None
    if isinstance(model.class_weight, dict):
        parameters["class_weight"] = {"pairs": list(model.class_weight.items())}
    header = {
        "format": FORMAT_VERSION,
        "parameters": parameters,
        "classes": model.classes_.tolist(),
        "classes_dtype": model.classes_.dtype.str,
        "temperature": model._calibrator.find_temperature(model.n_jobs),
    }
    arrays = {f"dictionary{l}": atoms for l, atoms in enumerate(model.dictionaries_, 1)}
    if model.tangents_ is not None:
        arrays |= {f"tangents.{name}": np.asarray(part) for name, part in vars(model.tangents_).items()}
    return {**arrays, "coef": model.coef_, "intercept": model.intercept_}, header


def _unpack(arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> DDLCNClassifier:
    """The inverse of `_pack`."""
    from ddlcn.classifier import DDLCNClassifier
    from ddlcn.coding.tangents import TangentModel
    from ddlcn.features import DenseSIFT
    from ddlcn.svm import LinearSVM

    parameters = _with_tuples(header["parameters"])
    if isinstance(parameters["features"], dict):
        parameters["features"] = DenseSIFT(**_with_tuples(parameters["features"]["DenseSIFT"]))
    if isinstance(parameters["class_weight"], dict):
        parameters["class_weight"] = dict(parameters["class_weight"]["pairs"])
    classes = np.array(header["classes"], dtype=np.dtype(header["classes_dtype"]))
    dictionaries = [arrays[f"dictionary{l}"] for l in range(1, parameters["n_layers"] + 1)]
    tangents = None
    if parameters.get("tangents"):  # models written before there were any have no such parameter
        parts: dict[str, Any] = {field.name: arrays[f"tangents.{field.name}"] for field in fields(TangentModel)}
        tangents = TangentModel(**{**parts, "floor": parts["floor"].item()})
    machine = LinearSVM(arrays["coef"], arrays["intercept"], parameters["svm"] == "libsvm", len(classes))
    temperature = float(header["temperature"])
    return DDLCNClassifier._restore(parameters, classes, dictionaries, tangents, machine, temperature)


def _with_tuples(parameters: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples: lists become tuples again."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}


def _plain(value: Any) -> Any:
    """numpy's numbers and strings as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot save {value!r} of type {type(value).__name__} in a model file")
