"""Where images and labels come from: your own folder, and the sets of the paper (DESIGN section 4)."""

from __future__ import annotations

from ddlcn.datasets.folder import ImageFolder, load_folder

__all__ = ["ImageFolder", "load_folder"]
