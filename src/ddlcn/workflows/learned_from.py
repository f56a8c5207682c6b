"""Which picture files a model learned from, so that nobody measures it on them: a short digest of each in its card."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ddlcn.utils.threads import map_threads

# Bytes of a digest: among a million files no two are taken for each other by chance.
DIGEST_BYTES = 8


def digest_files(images: Iterable[Any], n_jobs: int | None = None) -> list[str]:
    """Digests of the contents of those images that are paths of files; of others nothing is said."""
    paths = [Path(image) for image in images if isinstance(image, str | os.PathLike)]
    return [digest for digest in map_threads(_digest, paths, n_jobs) if digest]


def count_learned(card: dict[str, Any], images: Iterable[Any], n_jobs: int | None = None) -> int:
    """How many of some images the model of this card learned from; 0 for a model that does not say."""
    known = set(card.get("files", ()))
    return sum(digest in known for digest in digest_files(images, n_jobs)) if known else 0


def _digest(path: Path) -> str:
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=DIGEST_BYTES).hexdigest()
    except OSError:  # whoever reads it for its picture says so
        return ""
