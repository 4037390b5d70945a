"""What a skill says of itself: cards/outlets/skills/*.yaml, from which a planner chooses and an MCP
server lists its tools."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from kit.compose.yaml_loader import UNREADABLE, load_yaml
from kit.core.errors import DataError
from kit.settings import HOME
from kit.tools.skill import SkillManifest

SKILLS = HOME / "cards" / "outlets" / "skills"


class Manifest(SkillManifest):
    """One skill as its file describes it."""

    model_config = ConfigDict(extra="forbid")
    id: str = Field(pattern=r"^[a-z][a-z_]{2,40}$")
    description: str = Field(min_length=20)
    capabilities: tuple[str, ...] = Field(min_length=1)
    limitations: tuple[str, ...] = Field(min_length=1)
    endpoint: str = Field(pattern=r"^skills/[a-z_]+$")
    tenants: tuple[str, ...] = ()
    """Whose keys it is there for; empty: everybody's."""

    def serves(self, tenant: str) -> bool:
        """Whether the skill exists for a tenant."""
        return not self.tenants or tenant in self.tenants


def read_manifests(folder: Path = SKILLS) -> Mapping[str, Manifest]:
    """The skills of a folder by id, in the order of their files. Raises DataError naming the file that is none."""
    manifests: dict[str, Manifest] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            manifest = Manifest.model_validate(load_yaml(path.read_text(encoding="utf-8")))
        except (OSError, *UNREADABLE, ValidationError) as error:
            raise DataError(f"{path} is no skill: {error}") from error
        if path.stem != manifest.id:
            raise DataError(f"{path} describes {manifest.id}: rename one of the two")
        manifests[manifest.id] = manifest
    if not manifests:
        raise DataError(f"{folder} holds no skill: add a file such as outlet_list.yaml")
    return manifests
