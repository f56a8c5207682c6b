"""Peak memory of a run. On Linux the peak can be reset; elsewhere it is that of the whole process."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path


def reset_peak_memory() -> None:
    """Start to measure."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float:
    """The largest resident size since `reset_peak_memory`, in MB."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    import resource

    unit = 1024.0**2 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
