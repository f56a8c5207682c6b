"""Known against unknown classes, and how far probabilities can be believed: half of Caltech 101 against the other.

Run: python -m benchmarks.unknown [--preset fast] [--seeds 3]. Of 51 classes 15 images learn and 15 others are tested,
of the 50 others 15 are tested. Bars: area under the curve at least 0.75, calibration error at most 0.05.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.data import point_to_shared_data
from ddlcn import DDLCNClassifier
from ddlcn.datasets import load_dataset
from ddlcn.workflows.evaluate import evaluate

N_KNOWN, N_TRAIN, N_TEST = 51, 15, 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    point_to_shared_data()
    data = load_dataset("caltech101")
    names = np.array(data.class_names)[data.labels]
    for seed in range(arguments.seeds):
        rng = np.random.default_rng(seed)
        known = set(rng.permutation(len(data.class_names))[:N_KNOWN].tolist())
        train: list[int] = []
        test: list[int] = []
        for c in range(len(data.class_names)):
            members = rng.permutation(np.flatnonzero(data.labels == c)).tolist()
            train += members[:N_TRAIN] if c in known else []
            test += members[N_TRAIN : N_TRAIN + N_TEST] if c in known else members[:N_TEST]
        model = DDLCNClassifier.preset(arguments.preset, random_state=seed)
        model.fit([data.images[i] for i in train], names[train])
        found = evaluate(model, [data.images[i] for i in test], names[test])
        of_known, of_unknown = (100 * (share or 0.0) for share in found.rejected)
        print(
            f"seed {seed}: accuracy {100 * found.result.accuracy:.1f} %, area {found.area_for_unknown:.3f}, "
            f"calibration error {found.calibration_error:.3f}; rejected {of_known:.1f} % of known, "
            f"{of_unknown:.1f} % of unknown",
            flush=True,
        )


if __name__ == "__main__":
    main()
