"""The evaluation of a model on a folder of pictures, as a page: accuracy, confusions, worst mistakes, atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from ddlcn.classifier import DDLCNClassifier
from ddlcn.descriptors import DenseSIFT
from ddlcn.inspection.class_atoms import rank_class_atoms
from ddlcn.report.glyphs import draw_atom
from ddlcn.report.pictures import to_data_address
from ddlcn.report.templating import mark_safe, render
from ddlcn.web.drawing import draw_heat, draw_picture, find_frame, find_limit
from ddlcn.workflows.evaluate import Evaluation

# Mistakes shown with their explanation; classes whose atoms are drawn, and atoms of each; rows of the confusion matrix.
N_WORST, N_CLASSES, N_ATOMS, MAX_MATRIX = 6, 12, 4, 30
SMALL = 200


def render_evaluation(
    model: DDLCNClassifier, evaluation: Evaluation, images: Sequence[Any], name: str, title: str
) -> str:
    """Render the page.

    Parameters
    ----------
    model : DDLCNClassifier
    evaluation : Evaluation
    images : sequence
        Those of `evaluation.predictions`, in their order.
    name, title : str
        Names of the model and of the folder.
    """
    return render(
        "ddlcn.web",
        "evaluation.html",
        evaluation=evaluation,
        name=name,
        title=title,
        matrix=_shade(evaluation) if len(evaluation.classes) <= MAX_MATRIX else None,
        worst=[_explain_mistake(model, evaluation, images[i], int(i)) for i in evaluation.list_worst(N_WORST)],
        atoms=_draw_atoms(model),
        shared=not len(model.branches_[0].atom_labels),
        card=model.card_,
    )


def _shade(evaluation: Evaluation) -> list[tuple[Any, list[tuple[int, float, bool]]]]:
    """Rows of the confusion matrix: (class, [(count, share of the class, whether it is right)])."""
    rows = []
    for c, row in enumerate(evaluation.confusion):
        total = max(1, int(row.sum()))
        rows.append((evaluation.classes[c], [(int(n), int(n) / total, k == c) for k, n in enumerate(row)]))
    return rows


def _explain_mistake(model: DDLCNClassifier, evaluation: Evaluation, image: Any, index: int) -> dict[str, Any]:
    prediction, y_true = evaluation.predictions[index], evaluation.labels[index]
    shown = {
        "name": prediction.name, "y_true": y_true, "label": prediction.label, "probability": prediction.ranking[0][1],
        "picture": to_data_address(draw_picture(image, SMALL)), "heats": [],
    }  # fmt: skip
    if model.svm != "libsvm":  # votes cannot be split
        explanation = model.explain(image)
        heats = [explanation.heat_map(label) for label in (prediction.label, y_true)]
        limit = find_limit(*heats)
        frame = find_frame(model.branches_[0].descriptors, image)
        drawn = [draw_heat(frame, heat, limit) for heat in heats]
        for picture in drawn:
            picture.thumbnail((SMALL, SMALL))
        shown["heats"] = [
            (f"for {label}", to_data_address(p)) for label, p in zip((prediction.label, y_true), drawn, strict=True)
        ]
    return shown


def _draw_atoms(model: DDLCNClassifier) -> list[tuple[Any, list[tuple[Any, list[str]]]]]:
    """Some atoms of some classes: (class, [(glyph, data addresses of the nearest training patches)])."""
    if not isinstance(model.branches_[0].descriptors, DenseSIFT):
        return []
    layer1 = model.dictionaries_[0]
    drawn = []
    for label, shown in _list_atoms(model):
        near = [[] if model.patches_ is None else model.patches_.of(atom) for atom in shown]
        pictures = [[to_data_address(Image.fromarray(np.asarray(p))) for p, _ in patches] for patches in near]
        drawn.append((label, [(mark_safe(draw_atom(layer1[a])), p) for a, p in zip(shown, pictures, strict=True)]))
    return drawn


def _list_atoms(model: DDLCNClassifier) -> list[tuple[Any, list[int]]]:
    """Some classes, and of each the numbers of some atoms of the first branch: its own or, if shared, those for it."""
    own = model.branches_[0].atom_labels
    if len(own):
        labels = np.unique(own)[:N_CLASSES].tolist()
        return [(label, np.flatnonzero(own == label)[:N_ATOMS].tolist()) for label in labels]
    if model.svm == "libsvm":  # its weights are of pairs of classes
        return []
    ranked = rank_class_atoms(model.encoding, model.linear_svm_, len(model.classes_), N_ATOMS)
    return list(zip(model.classes_.tolist(), ranked.tolist(), strict=True))[:N_CLASSES]
