"""Images and descriptors to measure on: Extended Yale B where it is found, made-up faces otherwise."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ddlcn import DDLCNClassifier, DenseSIFT
from ddlcn.datasets import load_yaleb

CHECKOUT = Path(__file__).resolve().parents[1]
# Images per person that the dictionary of 15 atoms a person is learned from: 6,240 descriptors for 15 atoms.
TRAINING_IMAGES = 8


@dataclass(frozen=True)
class Faces:
    """Images (n, H, W) uint8, the person of each (n,), and a sentence that says where they come from."""

    images: NDArray[np.uint8]
    people: NDArray[np.str_]
    source: str


def point_to_shared_data() -> None:
    """Where DDLCN_DATA is unset, use the folder that lies beside the checkout on the project's machines."""
    shared = CHECKOUT.parent / "shared" / "data"
    if not os.environ.get("DDLCN_DATA") and shared.is_dir():
        os.environ["DDLCN_DATA"] = str(shared)


def load_faces() -> Faces:
    """Extended Yale B, or synthetic faces where it is absent."""
    point_to_shared_data()
    try:
        images, people = load_yaleb()
    except FileNotFoundError:
        return synthetic_faces()
    return Faces(images, people, "Extended Yale B, 192 x 168 pixels")


def synthetic_faces(
    n_people: int = 38, n_lights: int = 24, shape: tuple[int, int] = (192, 168), seed: int = 0
) -> Faces:
    """Random smooth surfaces under random smooth light: their SIFT descriptors resemble those of faces.

    Natural images have spectra near 1/f; light varies more slowly still, and leaves dark parts where, as in Yale B,
    the patches are nearly flat.
    """
    rng = np.random.default_rng(seed)
    images, people = [], []
    for person in range(n_people):
        face = _smooth_field(rng, shape, exponent=1.3)
        for _ in range(n_lights):
            light = np.clip(0.5 + 0.4 * _smooth_field(rng, shape, exponent=2.5), 0.02, 1.0)
            noise = 0.005 * rng.standard_normal(shape)
            pixels = 255 * light * np.clip(0.5 + 0.15 * face + noise, 0, 1)
            images.append(pixels.astype(np.uint8))
            people.append(f"person{person:02d}")
    return Faces(np.stack(images), np.array(people), "SYNTHETIC faces (Extended Yale B was not found)")


def _smooth_field(rng: np.random.Generator, shape: tuple[int, int], exponent: float) -> NDArray[np.float64]:
    """Noise of spectrum 1 / f^exponent, mean 0, deviation 1."""
    frequency = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1]))
    frequency[0, 0] = np.inf  # no mean
    field = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(shape)) / frequency**exponent, shape)
    return field / field.std()


def train_classifier(faces: Faces) -> tuple[DDLCNClassifier, NDArray[np.uint8]]:
    """A classifier with 15 atoms per person, as in the paper, and the images that it has not seen, shuffled."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(faces.people))
    train = np.concatenate(
        [order[faces.people[order] == person][:TRAINING_IMAGES] for person in np.unique(faces.people)]
    )
    rest = order[~np.isin(order, train)]
    model = DDLCNClassifier(random_state=0).fit(faces.images[train], faces.people[train])
    return model, faces.images[rest]


def describe(images: NDArray[np.uint8], n: int) -> NDArray[np.float32]:
    """n dense SIFT descriptors (n, 128) of the images, in random order."""
    values, found = [], 0
    for descriptors in DenseSIFT().iter_transform(images):
        values.append(descriptors.values)
        found += len(descriptors)
        if found >= n:
            break
    if found < n:
        raise ValueError(f"{len(images)} images give {found} descriptors, {n} are needed: pass more images")
    return np.random.default_rng(0).permutation(np.concatenate(values))[:n]
