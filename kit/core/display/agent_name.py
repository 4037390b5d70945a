"""What people read in place of the id of an agent; what its card says of it stands in `AgentCard.label`."""

from functools import lru_cache

MOST_NAMES = 1_000
"""Ids whose words are kept: each is read several times in a turn, and a model may make up others."""


@lru_cache(MOST_NAMES)
def words_of_id(agent: str) -> str:
    """Returns an id in plain words, as it stands within a sentence: `offer details`."""
    return agent.replace("_", " ").replace("-", " ").strip().lower()


def heading(label: str) -> str:
    """Returns words with a capital in front: `E-receipts`. Those behind it stay as they were written."""
    return label[:1].upper() + label[1:]
