"""One run of DDLCN: settings and a seed in, a row out, made by the estimator that users get.

    settings -> DDLCNClassifier -> fit on the training images -> predict the test images

What the estimator does not offer goes in by its configuration: dictionary images of the "published" rule, which include
test images; and other layers to compare with: LLC's codes, filters, those of the published code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import CodedBlock, make_augmented_block
from ddlcn.classifier import DDLCNClassifier
from ddlcn.coding.llc import LLCCoder
from ddlcn.configuration import BRANCH_PARAMETERS, BranchConfig, EncoderConfig
from ddlcn.datasets import Dataset
from ddlcn.descriptors import DenseSIFT, describe, keep_descriptors
from ddlcn.encoder import DDLCNEncoder
from ddlcn.engines.compile import clock
from ddlcn.experiments.filters import FilterBank
from ddlcn.experiments.measure import (
    Trial,
    fill_in_accuracy,
    fill_in_approximation,
    fill_in_layers,
    fill_in_times,
    start_row,
)
from ddlcn.experiments.memory import reset_peak_memory
from ddlcn.experiments.protocol import draw_split, pick_run, take_part
from ddlcn.experiments.published_code import RankedCoder
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.experiments.trained_filters import Images, make_trained_block
from ddlcn.images import NamedImage
from ddlcn.joint import UNWATCHED, JointProgress, forget
from ddlcn.learning import Seeds, TrainingImages
from ddlcn.svm import SVMConfig

Array = NDArray[Any]

# Dictionary images whose descriptors set the biases of random filters.
N_FILTER_IMAGES = 200


def run_settings(
    data: Dataset,
    settings: Settings,
    seed: int,
    n_jobs: int | None = None,
    say: Callable[[str], None] = lambda _: None,
    epochs: Path | None = None,
) -> Row:
    """Run one cell of a table.

    Parameters
    ----------
    data : Dataset
    settings : Settings
    seed : int
        Of the split and of all that is learned; of a data set with runs, also the number of the run.
    n_jobs : int, optional
        Threads.
    say : function of a line of text
        Told what is being done.
    epochs : Path, optional
        A folder for the epochs of joint training: what was stopped goes on there. Removed when the run is finished.
    """
    reset_peak_memory()
    data = pick_run(data, seed)
    trial = prepare_trial(data, settings, seed, n_jobs)
    row = start_row(settings, seed, trial.split, data)
    say("learning")
    if settings.measure == "approximation":
        return fill_in_approximation(row, trial, fit_encoder(trial, settings, seed))
    if settings.measure == "layers":
        may_show = all(map(data.may_show, range(len(data.class_names))))
        return fill_in_layers(row, trial, fit_encoder(trial, settings, seed), may_show)
    begin = clock()
    model = fit_model(trial, settings, seed, JointProgress(epochs, say))
    row = replace(row, fit_seconds=clock() - begin)
    say("recognising")
    row = (fill_in_times if settings.measure == "time" else fill_in_accuracy)(row, trial, model)
    if epochs is not None:
        forget(epochs)
    return row


def prepare_trial(data: Dataset, settings: Settings, seed: int, n_jobs: int | None = None) -> Trial:
    """The images of one run, and how they are split."""
    items, labels, is_test = take_part(pick_run(data, seed), settings)
    return Trial(items, labels, draw_split(settings, labels, is_test, seed), n_jobs)


def fit_model(trial: Trial, settings: Settings, seed: int, progress: JointProgress = UNWATCHED) -> DDLCNClassifier:
    """The classifier that settings describe, fitted on the training images of a trial."""
    model = make_classifier(settings, seed, trial.n_jobs)
    return model.learn(*_prepare(model, trial, settings, seed), progress)


def fit_encoder(trial: Trial, settings: Settings, seed: int) -> DDLCNEncoder:
    """The same without its SVM, for what needs none."""
    model = make_classifier(settings, seed, trial.n_jobs)
    parameters = {name: getattr(model, name) for name in BRANCH_PARAMETERS}
    encoder = DDLCNEncoder(model.features, **parameters, n_jobs=model.n_jobs, random_state=model.random_state)
    return encoder.learn(*_prepare(encoder, trial, settings, seed))


def _prepare(
    model: DDLCNEncoder, trial: Trial, settings: Settings, seed: int
) -> tuple[EncoderConfig, TrainingImages, Seeds]:
    """What an estimator learns from the training images of a trial, and how."""
    split, classes = trial.split, np.arange(int(trial.labels.max()) + 1)
    items = keep_descriptors(trial.items)
    dictionary = None
    if not np.array_equal(split.dictionary, split.train):
        dictionary = _take(items, split.dictionary), trial.labels[split.dictionary]
    training = TrainingImages(_take(items, split.train), trial.labels[split.train], classes, dictionary)
    some = _take(items, split.dictionary[:N_FILTER_IMAGES])
    config = _change_layers(
        model.configure(), settings, seed, some, Images(training.items, training.labels), model.n_jobs
    )
    return config, training, Seeds.spawn(seed)


def make_classifier(settings: Settings, seed: int, n_jobs: int | None = None) -> DDLCNClassifier:
    """The estimator with the parameters that settings describe."""
    n = settings.n_layers
    beta, n_neighbors = settings.list_coding(n)
    return DDLCNClassifier(
        make_features(settings),
        atoms_per_class=settings.atoms_per_class,
        n_layers=n,
        deep_atoms=settings.deep_atoms or "auto",
        depth="augment" if settings.depth == "published-code" else settings.depth,
        layer_weights=settings.layer_weights[:n] or None,
        n_neighbors=n_neighbors,
        beta=beta,
        first_order=settings.first_order,
        pyramid=settings.pyramid,
        pool_power=settings.pool_power,
        C=settings.C,
        joint=settings.joint,
        n_jobs=n_jobs,
        random_state=seed,
    )


def make_features(settings: Settings) -> DenseSIFT:
    """The descriptors that settings describe."""
    return DenseSIFT(
        patch_size=settings.patch_size if len(settings.patch_size) > 1 else settings.patch_size[0],
        step=settings.step,
        max_side=settings.max_side,
        min_side=settings.min_side or None,
        border=settings.border,
    )


def _change_layers(
    config: EncoderConfig,
    settings: Settings,
    seed: int,
    dictionary_items: Sequence[NamedImage],
    images: Images,
    n_jobs: int | None = None,
) -> EncoderConfig:
    """The configuration with other layers in place of the exact codes, where settings ask for them.

    Biases of filters are set on `dictionary_items`; filters are trained on `images`.
    """
    (branch,) = config.branches

    def make_llc(dictionaries: Sequence[Array], own: BranchConfig) -> CodedBlock:
        coder = LLCCoder(dictionaries[0], settings.beta, settings.n_neighbors)
        coding = (own.beta, own.n_neighbors, own.pyramid, own.pool_power)
        return make_augmented_block(dictionaries, *coding, coder=coder)

    def make_bank(dictionaries: Sequence[Array], own: BranchConfig) -> FilterBank:
        sample = np.concatenate([describe(own.descriptors, item).values for item in dictionary_items])
        return FilterBank(sample, [len(atoms) for atoms in dictionaries], np.random.SeedSequence(seed).spawn(4)[3])

    def make_filters(dictionaries: Sequence[Array], own: BranchConfig) -> CodedBlock:
        filters = make_bank(dictionaries, own)
        ones = np.ones(filters.n_atoms)
        return CodedBlock(filters, ones, ones, own.pyramid, own.pool_power)

    def make_trained(dictionaries: Sequence[Array], own: BranchConfig) -> CodedBlock:
        n_classes = int(images.labels.max()) + 1
        svm = SVMConfig(n_classes, settings.C, "liblinear", np.ones(n_classes))
        own_seed = np.random.SeedSequence(seed).spawn(5)[4]
        bank = make_bank(dictionaries, own)
        return make_trained_block(bank, own.descriptors, own.pyramid, images, svm, own_seed, n_jobs)

    def make_ranked(dictionaries: Sequence[Array], own: BranchConfig) -> CodedBlock:
        coder = RankedCoder(dictionaries)
        return CodedBlock(coder, np.ones(coder.n_atoms), None, own.pyramid, own.pool_power)

    if settings.depth == "published-code":
        branch = replace(branch, make_block=make_ranked)
    elif settings.layer == "filters":
        branch = replace(branch, make_block=make_filters)
    elif settings.layer == "trained filters":
        branch = replace(branch, make_block=make_trained)
    elif settings.coder == "llc":
        branch = replace(branch, make_block=make_llc)
    return replace(config, branches=(branch,))


def _take(items: Sequence[NamedImage], chosen: NDArray[np.intp]) -> list[NamedImage]:
    return [items[i] for i in chosen.tolist()]
