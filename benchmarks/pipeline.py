"""The whole forward pass, images to pooled features: images per second, and memory beyond the output."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory import measure_in_fresh_process
from benchmarks.timing import Row, time_in_turns
from ddlcn import DDLCNClassifier


def compare_pipeline(model: DDLCNClassifier, images: NDArray[np.uint8], repeats: int) -> list[Row]:
    """Rows for `transform` of images (n, H, W) by a fitted classifier, on one and two threads."""
    jobs = model.n_jobs

    def transform(threads: int) -> None:
        model.set_params(n_jobs=threads).transform(images)

    best = time_in_turns({n: lambda n=n: transform(n) for n in (1, 2)}, repeats)
    model.set_params(n_jobs=jobs)
    rate = {threads: f"{len(images) / seconds:.0f} images/s" for threads, seconds in best.items()}
    atoms = model.dictionaries_[0]
    what = f"images to features, {len(atoms)} atoms"
    rows = [
        Row(what, 1, rate[1]),
        Row(what, 2, rate[2], f"one thread {rate[1]}", best[1] / best[2]),
    ]
    for threads in (1, 2):
        use = measure_in_fresh_process(atoms, list(images), model.n_neighbors, model.beta, threads)
        ours = f"{use.beyond_output / 1e6:.0f} MB"
        other = f"output {use.output / 1e6:.0f} MB"
        rows.append(Row(f"peak memory beyond output, {len(images)} images", threads, ours, other))
    return rows
