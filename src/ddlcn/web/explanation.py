"""The explanation of one prediction, as a page: heat maps of the winner and the runner-up, patches, atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from ddlcn.blocks import find_atom
from ddlcn.classifier import DDLCNClassifier
from ddlcn.descriptors import DenseSIFT
from ddlcn.inspection.patches import cut_patch
from ddlcn.report.glyphs import draw_atom
from ddlcn.report.pictures import to_data_address
from ddlcn.report.templating import mark_safe, render
from ddlcn.web.drawing import draw_heat, draw_picture, find_frame, find_limit
from ddlcn.workflows.predict import predict_each

# Atoms shown per class, and classes in the table.
N_ATOMS, N_LISTED = 6, 5


def render_explanation(model: DDLCNClassifier, image: Any, name: str) -> str:
    """Render the page of one image."""
    (prediction,) = predict_each(model, [(name, image)], n_jobs=1)
    if prediction.error:
        raise ValueError(prediction.error)
    return render("ddlcn.web", "explanation.html", name=name, **explain_image(model, image), prediction=prediction)


def explain_image(model: DDLCNClassifier, image: Any) -> dict[str, Any]:
    """Explain one image for a page: the picture, and heat map and atoms of the winner and the runner-up.

    Returns
    -------
    shown : dict
        "picture": a data address; "sides": a dict per class (winner first) with "label", "score", "intercept",
        "from_image", "heat" (a data address) and "atoms", dicts with "contribution", "learned_from", "glyph" (SVG),
        "patch" and "near" (data addresses); "listed": (label, score) of the best classes.
    """
    explanation = model.explain(image)
    features = model.branches_[0].descriptors  # the explanation's places are those of the first
    labels = explanation.ranking[:2].tolist()
    heats = [explanation.heat_map(label) for label in labels]
    limit, frame = find_limit(*heats), find_frame(features, image)
    grey = features.read(image) if hasattr(features, "read") else None
    sides = []
    for label, heat in zip(labels, heats, strict=True):
        c = explanation.classes.tolist().index(label)
        atoms = []
        for share in explanation.top_atoms(label, N_ATOMS):
            branch, atom = find_atom(model.branches_, share.atom)
            near = [] if model.patches_ is None else model.patches_.of(share.atom)
            atoms.append(
                {
                    "contribution": share.contribution,
                    "learned_from": share.learned_from,
                    "glyph": mark_safe(draw_atom(atom)) if isinstance(branch.descriptors, DenseSIFT) else "",
                    "patch": ""
                    if grey is None
                    else _draw_patch(grey, explanation.xy[share.patch], explanation.sizes[share.patch]),
                    "near": [(to_data_address(Image.fromarray(p)), label_) for p, label_ in near],
                }
            )
        sides.append(
            {
                "label": label,
                "score": float(explanation.scores[c]),
                "intercept": float(explanation.intercept[c]),
                "from_image": float(explanation.contributions[:, c].sum()),
                "heat": to_data_address(draw_heat(frame, heat, limit)),
                "atoms": atoms,
            }
        )
    best = np.argsort(-explanation.scores, kind="stable")[:N_LISTED]
    listed = [(explanation.classes[c], float(explanation.scores[c])) for c in best]
    return {"picture": to_data_address(draw_picture(image)), "sides": sides, "listed": listed}


def _draw_patch(grey: Any, xy: Any, size: float) -> str:
    return to_data_address(Image.fromarray(cut_patch(grey, xy, size)))
