"""Joint training that can be watched, and continued where it was stopped.

Every epoch is written to a file that is named after all that the training starts from: network, images, settings, seed.
So one folder serves all trainings of a fit, the trials on held-out images too, and no file is taken for another's.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.utils.files import write_whole

Array = NDArray[Any]


@dataclass(frozen=True)
class JointProgress:
    """What happens to the epochs of a joint training.

    Attributes
    ----------
    folder : Path, optional
        Where the state after every epoch is kept; None: nowhere.
    tell : function of a line of text
        Hears of every epoch.
    """

    folder: Path | None = None
    tell: Callable[[str], None] = lambda _: None

    def open(self, start: Sequence[Any]) -> KeptState:
        """The state of the training that starts from these arrays and values."""
        digest = hashlib.sha256()
        for part in start:
            digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        return KeptState(None if self.folder is None else self.folder / f"{digest.hexdigest()[:24]}.npz")


def forget(folder: Path) -> None:
    """Remove the states in a folder, and the folder if nothing else is in it."""
    for state in folder.glob("*.npz"):
        state.unlink(missing_ok=True)
    with suppress(OSError):  # not there, or somebody keeps other files in it
        folder.rmdir()


@dataclass(frozen=True)
class KeptState:
    """Arrays in a file, or nowhere."""

    path: Path | None

    def read(self) -> list[Array] | None:
        """What was written last; None if nothing was, or if it is damaged."""
        if self.path is None or not self.path.exists():
            return None
        try:
            with np.load(self.path) as kept:
                return [kept[f"arr_{i}"] for i in range(len(kept.files))]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def write(self, arrays: Sequence[Array]) -> None:
        """Replace what was written before."""
        if self.path is not None:
            buffer = io.BytesIO()
            np.savez(buffer, *arrays)
            write_whole(self.path, buffer.getvalue(), make_folder=True)


# Nobody watches, and nothing is kept.
UNWATCHED = JointProgress()
NOT_KEPT = KeptState(None)
