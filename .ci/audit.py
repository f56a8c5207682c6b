"""Known holes in the packages that are installed: pip-audit, where it can reach its data.

Without a network, or behind a mirror that knows no holes, a sentence says so and nothing fails: a check that could not
be made is not a check that passed. A hole that a newer release mends is a failure; one that none mends is only told.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SECONDS = 60  # for all of it
COMMAND = ("-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner=off", "--timeout=5", "--format=json")


def judge(report: dict[str, Any]) -> tuple[list[str], bool]:
    """What to say about pip-audit's report, and whether it is a failure."""
    looked_up = [package for package in report["dependencies"] if "vulns" in package]
    skipped = len(report["dependencies"]) - len(looked_up)
    if not looked_up:
        return ["audit: skipped, the package index here knows nothing about holes"], False
    lines, failed = [], False
    for package in looked_up:
        for hole in package["vulns"]:
            mended = ", ".join(hole["fix_versions"])
            failed |= bool(mended)
            what = f"mended in {mended}" if mended else "not mended yet"
            lines.append(f"audit: {package['name']} {package['version']} has {hole['id']}, {what}")
    lines.append(f"audit: {len(looked_up)} packages looked up, {len(lines)} holes known; {skipped} not looked up")
    return lines, failed


def main() -> int:
    try:
        done = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, timeout=SECONDS)
        report = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        print(f"audit: skipped, no answer within {SECONDS} seconds")
        return 0
    except json.JSONDecodeError:
        why = (done.stderr.strip() or "no output").splitlines()[-1]
        print(f"audit: skipped, pip-audit could not reach its data ({why[:200]})")
        return 0
    lines, failed = judge(report)
    print(*lines, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
