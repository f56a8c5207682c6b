"""What the paper claims, each claim with its test: a verdict and figures that are computed from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddlcn.experiments.published import list_claims
from ddlcn.report.claim_tests import TESTS
from ddlcn.report.comparisons import DepthLine
from ddlcn.report.evidence import Evidence, Finding
from ddlcn.report.published import PaperTable
from ddlcn.report.results import Grid

UNTESTED = "not tested yet"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper."""

    id: str
    says: str
    found: Finding


def read_claims(grids: Sequence[Grid], tables: Sequence[PaperTable], depths: Sequence[DepthLine]) -> list[Claim]:
    """All claims in the paper's order; none if the experiments have nothing to do with the paper."""
    if not tables:
        return []
    numbers = {line.number.name: line for table in tables for line in table.lines}
    evidence = Evidence({grid.experiment.name: grid for grid in grids}, numbers, depths)
    claims = []
    for id, says in list_claims():
        found = TESTS[id](evidence) if id in TESTS else None
        claims.append(Claim(id, says, found or Finding(UNTESTED, "", (), ())))
    return claims
