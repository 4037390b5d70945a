"""The offline stand-in: a deterministic chat model that needs no key, no download and no server, and is no LLM."""

from kit.models.offline.model import NAME, OfflineModel

__all__ = ["NAME", "OfflineModel"]
