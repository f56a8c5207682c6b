"""Shared by the tests of pretrained networks."""

from __future__ import annotations

import pytest

from ddlcn.descriptors.pretrained import backbones, packaged


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache, and no network open from before."""
    monkeypatch.setattr(packaged, "user_cache_path", lambda _: tmp_path / "cache")
    backbones._open_packaged.cache_clear()
    packaged._open_session.cache_clear()
    yield tmp_path / "cache"
    backbones._open_packaged.cache_clear()
    packaged._open_session.cache_clear()
