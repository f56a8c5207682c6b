"""Atoms and classifier together: one objective, exact gradients through the codes (docs/joint.md)."""

from ddlcn.joint.choose import JointResult, check_joint, choose_strength, train_jointly
from ddlcn.joint.objective import HingeLoss
from ddlcn.joint.progress import UNWATCHED, JointProgress, forget
from ddlcn.joint.training import Epoch, JointConfig, JointTraining

__all__ = [
    "UNWATCHED",
    "Epoch",
    "HingeLoss",
    "JointConfig",
    "JointProgress",
    "JointResult",
    "JointTraining",
    "check_joint",
    "choose_strength",
    "forget",
    "train_jointly",
]
