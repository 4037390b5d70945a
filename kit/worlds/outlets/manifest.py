"""What a skill says of itself: cards/outlets/skills/*.yaml, from which a planner chooses and an MCP server lists its tools."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from kit.core.errors import DataError
from kit.core.value import Value
from kit.settings import HOME

SKILLS = HOME / "cards" / "outlets" / "skills"


class Manifest(Value):
    """One skill as its file describes it."""

    id: str = Field(pattern=r"^[a-z][a-z_]{2,40}$")
    description: str = Field(min_length=20)
    capabilities: tuple[str, ...] = Field(min_length=1)
    limitations: tuple[str, ...] = Field(min_length=1)
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    execution_mode: Literal["sync"]
    """When the result is there: with the reply to the call. There is no other mode."""
    endpoint: str = Field(pattern=r"^skills/[a-z_]+$")
    """Where it is called over plain HTTP, below the URL of the tenant."""
    tenants: tuple[str, ...] = ()
    """Whose keys it is there for; empty: everybody's."""

    @property
    def words(self) -> str:
        """What a model reads before it calls the skill."""
        return f"{self.description} Can {'; '.join(self.capabilities)}. Cannot {'; '.join(self.limitations)}."

    def serves(self, tenant: str) -> bool:
        """Whether the skill exists for a tenant."""
        return not self.tenants or tenant in self.tenants


def read_manifests(folder: Path = SKILLS) -> Mapping[str, Manifest]:
    """The skills of a folder by id, in the order of their files. Raises DataError naming the file that is none."""
    manifests: dict[str, Manifest] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            manifest = Manifest.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        except (OSError, yaml.YAMLError, ValidationError) as error:
            raise DataError(f"{path} is no skill: {error}") from error
        if path.stem != manifest.id:
            raise DataError(f"{path} describes {manifest.id}: rename one of the two")
        manifests[manifest.id] = manifest
    if not manifests:
        raise DataError(f"{folder} holds no skill: add a file such as outlet_list.yaml")
    return manifests
