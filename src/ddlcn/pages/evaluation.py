"""How good a model is on a folder of pictures, as a page: figures, confusions, its worst mistakes, its atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from ddlcn.evaluation import Evaluation
from ddlcn.features import DenseSIFT
from ddlcn.pages.drawing import draw_atom, draw_heat, draw_picture, find_limit
from ddlcn.report.pictures import to_data_address
from ddlcn.report.templating import render

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier

# Mistakes shown with their explanation; classes whose atoms are drawn, and atoms of each; rows of the confusion matrix.
N_WORST, N_CLASSES, N_ATOMS, MAX_MATRIX = 6, 12, 4, 30
SMALL = 200


def render_evaluation(
    model: DDLCNClassifier, evaluation: Evaluation, images: Sequence[Any], name: str, title: str
) -> str:
    """The page.

    Parameters
    ----------
    model : DDLCNClassifier
    evaluation : Evaluation
    images : sequence
        Those of `evaluation.predictions`, in their order.
    name, title : str
        What the model and the folder are called.
    """
    return render(
        "ddlcn.pages",
        "evaluation.html",
        evaluation=evaluation,
        name=name,
        title=title,
        matrix=_shade(evaluation) if len(evaluation.classes) <= MAX_MATRIX else None,
        worst=[_explain_mistake(model, evaluation, images[i], int(i)) for i in evaluation.list_worst(N_WORST)],
        atoms=_draw_atoms(model),
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
    prediction, truth = evaluation.predictions[index], evaluation.labels[index]
    shown = {
        "name": prediction.name, "truth": truth, "label": prediction.label, "probability": prediction.ranking[0][1],
        "picture": to_data_address(draw_picture(image, SMALL)), "heats": [],
    }  # fmt: skip
    if model.svm != "libsvm":  # votes cannot be split
        explanation = model.explain(image)
        heats = [explanation.heat_map(label) for label in (prediction.label, truth)]
        limit = find_limit(*heats)
        drawn = [draw_heat(image, heat, limit) for heat in heats]
        for picture in drawn:
            picture.thumbnail((SMALL, SMALL))
        shown["heats"] = [
            (f"for {label}", to_data_address(p)) for label, p in zip((prediction.label, truth), drawn, strict=True)
        ]
    return shown


def _draw_atoms(model: DDLCNClassifier) -> list[tuple[Any, list[tuple[Any, list[str]]]]]:
    """For some classes some atoms: (class, [(glyph, data addresses of the training patches nearest to it)])."""
    from markupsafe import Markup

    if len(model.branches_) > 1 or not isinstance(model.branches_[0].features, DenseSIFT):
        return []
    layer1 = model.dictionaries_[0]
    drawn = []
    for label in np.unique(model.atom_labels_)[:N_CLASSES].tolist():
        own = np.flatnonzero(model.atom_labels_ == label)[:N_ATOMS].tolist()
        near = [[] if model.patches_ is None else model.patches_.of(atom) for atom in own]
        pictures = [[to_data_address(Image.fromarray(np.asarray(p))) for p, _ in patches] for patches in near]
        drawn.append((label, [(Markup(draw_atom(layer1[a])), p) for a, p in zip(own, pictures, strict=True)]))
    return drawn
