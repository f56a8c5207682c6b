"""What a network of the paper's form is like, layer by layer: do classes come apart, how large are codes, what do
atoms hold?

In: a trial and an encoder fitted on it. Out: one dict of numbers per layer, for the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.blocks import TOL, Branch, Encoding
from ddlcn.coding import encode_layers
from ddlcn.descriptors import describe, extract
from ddlcn.encoder import DDLCNEncoder
from ddlcn.engines.cpu.sift import N_ORIENTATIONS
from ddlcn.images import NamedImage
from ddlcn.inspection.patches import cut_patch

Array = NDArray[Any]

# Test images whose patches are pictured; atoms of a layer that are shown, and how many patches each picture averages.
N_IMAGES, N_ATOMS, N_PATCHES = 300, 8, 20
# Of every picture's 32 x 32 pixels, 16 x 16 are written down.
HALF = 2


def measure_layers(
    model: DDLCNEncoder, items: Sequence[NamedImage], labels: NDArray[np.intp], may_show: bool, n_jobs: int | None
) -> list[dict[str, Any]]:
    """What is known of every layer.

    Parameters
    ----------
    model : DDLCNEncoder
        With augmented depth, and one kind of descriptor.
    items : sequence of n NamedImages; labels : ndarray (n,)
        Test images.
    may_show : bool
        Whether pieces of them may be shown.

    Returns
    -------
    layers : list of dicts
        separability: of the features of the network that ends with this layer (`separate`); largest_code, mean_code:
        sizes of the codes that are not zero; orientations: `count_orientations`, mean over atoms; pictures: of the
        most used atoms, (16, 16) bytes as lists.
    """
    (branch,) = model.branches_
    batch = branch.collect([describe(branch.descriptors, item) for item in items])
    deep_codes = encode_layers(branch.dictionaries, branch.config.beta, branch.config.n_neighbors, TOL, n_jobs)
    pictures = picture_atoms(branch, items[:N_IMAGES], deep_codes) if may_show else []
    layers = []
    for i, (atoms, codes) in enumerate(
        zip(branch.dictionaries, [branch.coded.encode_rows(batch.X), *deep_codes], strict=True)
    ):
        features = Encoding([truncate(branch, i + 1)], (1.0,)).transform(items, n_jobs)
        sizes = np.abs(codes.data)
        layer = {
            "separability": separate(features, labels),
            "largest_code": float(sizes.max()),
            "mean_code": float(sizes.mean()),
            "orientations": float(count_orientations(atoms).mean()),
        }
        layers.append({**layer, "pictures": pictures[i]} if pictures else layer)
    return layers


def truncate(branch: Branch, n_layers: int) -> Branch:
    """The network that ends with layer `n_layers`: layers are learned one after the other, so it is the same there."""
    config = replace(
        branch.config, n_layers=n_layers, beta=branch.config.beta[:n_layers],
        n_neighbors=branch.config.n_neighbors[:n_layers],
    )  # fmt: skip
    return replace(branch, config=config, dictionaries=branch.dictionaries[:n_layers], _blocks=[])


def separate(features: Any, labels: NDArray[np.intp]) -> float:
    """Scatter of the classes' means, as a share of the scatter within classes.

    Parameters
    ----------
    features : csr_array (n, columns); labels : ndarray (n,)
    """
    classes, indices, counts = np.unique(labels, return_inverse=True, return_counts=True)
    members = sparse.csr_array((1.0 / counts[indices], (indices, np.arange(len(labels)))), (len(classes), len(labels)))
    features = features.astype(np.float64)
    squares = (members @ features).power(2).sum(axis=1)  # of every class's mean
    total = features.power(2).sum()
    overall = np.square(features.mean(axis=0)).sum() * len(labels)
    between = counts @ squares
    return float((between - overall) / (total - between))


def count_orientations(atoms: Array) -> Array:
    """How many orientations an atom of SIFT has in effect (atoms,): 1 for a single straight edge, at most 8.

    The exponential of the entropy of what its cells hold together of each orientation.
    """
    held = np.abs(atoms.astype(np.float64)).reshape(len(atoms), -1, N_ORIENTATIONS).sum(axis=1)
    shares = held / np.maximum(held.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1)))


def picture_atoms(branch: Branch, items: Sequence[NamedImage], deep_codes: Sequence[Any]) -> list[list[Any]]:
    """Every layer's most used atoms, as averages of the patches that use each most, through the layers above it."""
    extracted = [extract(branch.descriptors, item) for item in items]
    described = [branch.descriptors.finish(each) for each in extracted]
    owners = np.repeat(np.arange(len(items)), [len(d) for d in described])
    places = np.concatenate([np.arange(len(d)) for d in described])
    use = branch.coded.encode_rows(branch.collect(described).X)  # (patches, atoms)
    layers = []
    for codes in [None, *deep_codes]:
        use = use if codes is None else sparse.csr_array(use @ codes)
        dense = np.maximum(use.toarray(), 0.0)
        shown = np.argsort(-dense.sum(axis=0), kind="stable")[:N_ATOMS]
        pictures = []
        for atom in shown.tolist():
            most = np.argsort(-dense[:, atom], kind="stable")[:N_PATCHES].tolist()
            cut = []
            for i in most:
                picture, d = extracted[owners[i]].picture, described[owners[i]]
                assert picture is not None  # dense SIFT keeps it
                assert d.sizes is not None
                cut.append(cut_patch(picture / np.float32(255), d.xy[places[i]], d.sizes[places[i]]))
            mean = np.mean(cut, axis=0)
            small = mean.reshape(len(mean) // HALF, HALF, -1, HALF).mean(axis=(1, 3))
            pictures.append(np.round(small).astype(int).tolist())
        layers.append(pictures)
    return layers
