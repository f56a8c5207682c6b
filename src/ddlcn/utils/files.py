"""Write a file whole: a reader, or a process killed at any moment, finds the old file or the new one, never half.

Every file that ddlcn writes for keeps goes through here.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], content: bytes | str, make_folder: bool = False) -> None:
    """Write a file in one step.

    Parameters
    ----------
    path : path
        A file that is there already is replaced, and keeps its permissions.
    content : bytes or str
        Text is written as UTF-8.
    make_folder : bool
        Whether to make the folder if it is missing.

    Raises
    ------
    OSError
        If it cannot be written. The message names `path`, and the old file is untouched.
    """
    with open_whole(path, make_folder) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def check_writable(path: str | os.PathLike[str], make_folder: bool = False) -> None:
    """Raise OSError now, not after long work, if `write_whole` could not write this file; the message names it."""
    if os.path.isdir(path):
        raise _about(path, OSError(errno.EISDIR, os.strerror(errno.EISDIR)))
    if os.path.exists(path) and not os.path.isfile(path):
        return  # a pipe or /dev/null
    goal = Path(os.path.realpath(path))
    trial = goal.with_name(f".{goal.name[:40]}.{secrets.token_hex(8)}.try")
    try:
        write_whole(trial, b"", make_folder)
        trial.unlink()
    except OSError as error:
        raise _about(path, error) from error


@contextmanager
def open_whole(path: str | os.PathLike[str], make_folder: bool = False) -> Iterator[BinaryIO]:
    """A binary file to write into; it gets its name when the block ends, and vanishes if the block fails.

    Parameters and errors as of `write_whole`.
    """
    try:
        if make_folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        if os.path.exists(path) and not os.path.isfile(path):
            # A pipe or /dev/null is written into, not replaced; a folder fails here.
            with open(path, "wb") as file:
                yield file
            return
        goal = Path(os.path.realpath(path))  # what a link points to is replaced, not the link
        # `open` with "x" refuses a name that exists and obeys the umask; mkstemp would make the file private.
        temporary = goal.with_name(f".{goal.name[:40]}.{secrets.token_hex(8)}.tmp")
        try:
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if goal.exists():
                os.chmod(temporary, goal.stat().st_mode & 0o7777)
            os.replace(temporary, goal)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _about(path, error) from error


def _about(path: str | os.PathLike[str], error: OSError) -> OSError:
    """The same class of error, about the file that was asked for and not a temporary one."""
    if error.errno is None:
        return OSError(f"cannot write {os.fspath(path)}: {error}")
    return OSError(error.errno, error.strerror, os.fspath(path))
