"""What is finished of a long job, in a file beside its result, so that a killed job continues where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from ddlcn.utils.files import write_whole


class Checkpoint:
    """Finished steps by name; the file is gone when the job is done.

    Parameters
    ----------
    path : Path
    key : str
        What the job depends on; a file with another key is refused.
    resume : bool
        Whether to continue with what is there.
    """

    def __init__(self, path: Path, key: str, resume: bool) -> None:
        self._path, self._lock = path, Lock()
        self._state: dict[str, Any] = {"key": key, "done": {}}
        if not resume or not path.exists():
            return
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if state.get("key") != key:
            raise ValueError(
                f"{path} belongs to a training with other images or settings: give the same, or leave out --resume"
            )
        self._state = state

    def recall(self, name: str, make: Callable[[], Any]) -> Any:
        """The result of that name from before the interruption, or made now and written down (JSON)."""
        done = self._state["done"]
        if name not in done:
            made = make()
            with self._lock:
                done[name] = made
                write_whole(self._path, json.dumps(self._state))
        return done[name]

    def finish(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)
