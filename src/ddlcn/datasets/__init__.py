"""Where images come from: a folder of folders, and data sets in their original distribution."""

from __future__ import annotations

from ddlcn.datasets.folder import ImageFolder, load_folder
from ddlcn.datasets.mnist import load_mnist
from ddlcn.datasets.root import data_root
from ddlcn.datasets.yaleb import load_yaleb

__all__ = ["ImageFolder", "data_root", "load_folder", "load_mnist", "load_yaleb"]
