"""Descriptors -> features: blocks of columns, the branch of every kind of descriptor, and their concatenation."""

from ddlcn.blocks.branch import TOL, Branch, SingleBranch, find_atom, make_augmented_block
from ddlcn.blocks.encoding import EncodedImages, Encoding
from ddlcn.blocks.kinds import Batch, Block, CodedBlock, FirstOrderBlock, GlobalBlock

__all__ = [
    "TOL",
    "Batch",
    "Block",
    "Branch",
    "CodedBlock",
    "EncodedImages",
    "Encoding",
    "FirstOrderBlock",
    "GlobalBlock",
    "SingleBranch",
    "find_atom",
    "make_augmented_block",
]
