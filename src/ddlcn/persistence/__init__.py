"""Fitted models as files."""
