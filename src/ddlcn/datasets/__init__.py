"""Sources of images: a folder of folders, and data sets in their original distribution."""

from __future__ import annotations

from ddlcn.datasets.archive import ArchiveMember
from ddlcn.datasets.catalogue import CATALOGUE, Record
from ddlcn.datasets.dataset import Dataset
from ddlcn.datasets.folder import ImageFolder, load_folder
from ddlcn.datasets.mnist import load_mnist
from ddlcn.datasets.registry import load_dataset
from ddlcn.datasets.root import data_root
from ddlcn.datasets.yaleb import load_yaleb

__all__ = [
    "CATALOGUE",
    "ArchiveMember",
    "Dataset",
    "ImageFolder",
    "Record",
    "data_root",
    "load_dataset",
    "load_folder",
    "load_mnist",
    "load_yaleb",
]
