"""Dense SIFT against OpenCV's SIFT on the same grid.

OpenCV takes keypoints with a size. In its `calcSIFTDescriptor` a cell is 3 * (size / 2) = 1.5 * size pixels wide, and
the window has 4 x 4 cells: 6 * size. So size = patch / 6 covers the patch. (Measured, up to the order of the 128
numbers: the mean cosine between its descriptors and ours is 0.95 for that size, 0.90 for patch / 5 and 0.77 for
patch / 4.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.rivals import cv2
from benchmarks.timing import NOT_INSTALLED, Bar, Row, time_in_turns
from ddlcn import DenseSIFT
from ddlcn.descriptors.dense import place_grid

PATCH, STEP = 16, 6
WIDTH, HEIGHT = 300, 200
CALLS = 8  # images a measurement: one takes a few milliseconds


def compare_sift(image: NDArray[np.uint8], repeats: int) -> list[Row]:
    """Rows for one image, brought to 300 x 200 pixels; both sides start from 8-bit grey."""
    grey = np.asarray(Image.fromarray(image).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))
    images = [grey] * CALLS
    sift = DenseSIFT(patch_size=PATCH, step=STEP)
    contenders: dict[str, Any] = {
        f"ddlcn {threads}": lambda threads=threads: list(sift.iter_transform(images, n_jobs=threads))
        for threads in (1, 2)
    }
    cv2_threads = 0
    if cv2 is not None:
        keypoints = place_keypoints()
        rival = cv2.SIFT_create()
        contenders["OpenCV"] = lambda: [rival.compute(image, keypoints) for image in images]
        cv2_threads = cv2.getNumThreads()
        cv2.setNumThreads(1)
    best = time_in_turns(contenders, repeats)
    if cv2 is not None:
        cv2.setNumThreads(cv2_threads)

    what = f"dense SIFT, {WIDTH} x {HEIGHT}, {PATCH} px step {STEP}"
    milliseconds = {name: f"{1000 * seconds / CALLS:.2f} ms" for name, seconds in best.items()}
    bar = Bar(">=", 2.0)
    if cv2 is None:
        first = Row(what, 1, milliseconds["ddlcn 1"], f"OpenCV {NOT_INSTALLED}", None, bar)
    else:
        ratio = best["OpenCV"] / best["ddlcn 1"]
        first = Row(what, 1, milliseconds["ddlcn 1"], f"OpenCV {milliseconds['OpenCV']}", ratio, bar)
    ratio = best["ddlcn 1"] / best["ddlcn 2"]
    return [first, Row(what, 2, milliseconds["ddlcn 2"], f"one thread {milliseconds['ddlcn 1']}", ratio)]


def place_keypoints() -> list[Any]:
    """OpenCV keypoints at the centres of our patches, upright."""
    centre = (PATCH - 1) / 2
    return [
        cv2.KeyPoint(left + centre, top + centre, PATCH / 6, 0)
        for top in place_grid(HEIGHT, PATCH, STEP)
        for left in place_grid(WIDTH, PATCH, STEP)
    ]
