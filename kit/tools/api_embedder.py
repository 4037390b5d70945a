"""Vectors of texts from a model behind an OpenAI-compatible endpoint."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from kit.core.documents.document import DIMENSION
from kit.core.errors import EmbedderError

TIMEOUT = 10.0
"""Seconds after which a text goes without a vector."""


@dataclass(frozen=True, slots=True)
class ApiEmbedder:
    """A model behind an OpenAI-compatible endpoint, which is sent every text that is to be found again."""

    model: str
    client: httpx.AsyncClient
    """Of that endpoint, with its key."""

    @property
    def name(self) -> str:
        return f"{self.model}-{DIMENSION}"

    async def embed(self, text: str) -> tuple[float, ...]:
        """Returns the vector that the model gives. Raises EmbedderError where it gives none of the right length."""
        body = {"model": self.model, "input": text or " ", "dimensions": DIMENSION}
        try:
            response = await self.client.post("embeddings", json=body)
            response.raise_for_status()
            numbers: Any = response.json()["data"][0]["embedding"]
            vector = tuple(map(float, numbers))
        except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
            raise EmbedderError(f"{self.model} gave no vector: {type(error).__name__}") from error
        if len(vector) != DIMENSION:
            raise EmbedderError(
                f"{self.model} gave {len(vector)} numbers and was asked for {DIMENSION}: name under KIT_EMBEDDER "
                "a model whose `dimensions` can be chosen"
            )
        return vector


@asynccontextmanager
async def open_api_embedder(model: str, url: str, key: str) -> AsyncGenerator[ApiEmbedder]:
    """Opens the connections to an endpoint, and closes them at the end."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT) as client:
        yield ApiEmbedder(model, client)
