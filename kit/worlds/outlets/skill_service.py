"""The skills of a tenant found, described and called; what may not be called is refused by a value that says why."""

from asyncio import sleep
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from kit.core.errors import DataError
from kit.core.value import Value
from kit.tools.mcp.json_schema import first_misfit, schema_fault
from kit.tools.skill import FIND, LOAD, Fence, SkillRefusal
from kit.worlds.outlets.access import Scope
from kit.worlds.outlets.acts import act
from kit.worlds.outlets.call_log import CallLog, LoggedCall
from kit.worlds.outlets.lookups import LOOKUPS
from kit.worlds.outlets.manifest import Manifest, read_manifests
from kit.worlds.service.search import Index

CANDIDATES = 6
"""Skills that a search gives at most. Those that fit come first; the rest is for the planner to leave out."""
Fault: TypeAlias = Literal["none", "fails", "hangs", "lies", "loses"]
"""What goes wrong at one call. `lies`: the result breaks the skill's schema; `loses`: the skill
runs, and no reply comes."""
HANGS = 600.0
"""Seconds: longer than any caller waits."""
_TEXT = {"type": "string", "minLength": 1, "maxLength": 10_000}


class SkillFailed(Exception):
    """A skill that could not do what it was asked for."""


class Tool(Value):
    """What a caller reads of a skill, or of the two tools that find and describe skills."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_NAME = {"type": "string"}
DISCOVERY = (
    Tool(
        name=FIND,
        description="Finds the skills that a task may need: their names, with a short "
        "description each, the best first.",
        input_schema=_object(query={**_TEXT, "description": "What is to be done, in words."}),
        output_schema=_object(
            skills={"type": "array", "items": _object(skill_name=_NAME, description=_NAME)}
        ),
    ),
    Tool(
        name=LOAD,
        description="Describes one skill: what it can and cannot, its input and output schema, its mode and endpoint.",
        input_schema=_object(
            skill_name={**_TEXT, "description": "A name that find_relevant_skills gave."}
        ),
        output_schema={
            "type": "object",
            "required": ["id", "capabilities", "limitations", "input_schema", "output_schema"],
        },
    ),
)


class SkillService:
    """The skills of all tenants; every question is asked in a scope."""

    def __init__(
        self,
        manifests: Mapping[str, Manifest] | None = None,
        *,
        log: CallLog | None = None,
        faults: Mapping[str, Sequence[Fault]] | None = None,
    ):
        """`log`: where every call that runs is written down; without one, acts alone are
        remembered. `faults`: skill -> what goes wrong at its first calls, in their order.

        Raises DataError for a manifest that cannot be read, or whose schema is none.
        """
        if manifests is None:
            self._manifests = read_manifests()
        else:
            self._manifests = manifests
        self._log = log
        self._acts = log or CallLog()
        self._fences: dict[tuple[str, str], int] = {}
        """Tenant and plan -> the highest fence that an act came with."""
        self._faults = {skill: deque(script) for skill, script in (faults or {}).items()}
        for skill in self._manifests.values():
            if fault := schema_fault(skill.input_schema) or schema_fault(skill.output_schema):
                raise DataError(f"skill {skill.id} has a schema that is none: {fault}")

    def manifests(self, scope: Scope) -> Mapping[str, Manifest]:
        """The skills that a tenant has. A token hides none of them, so that tools stay the same from step to step."""
        return {key: skill for key, skill in self._manifests.items() if skill.serves(scope.tenant)}

    def tools(self, scope: Scope) -> Sequence[Tool]:
        """Everything that can be called by a tenant, the discovery of skills first."""
        skills = self.manifests(scope).values()
        return (
            *DISCOVERY,
            *(
                Tool(
                    name=s.id,
                    description=s.words,
                    input_schema=s.input_schema,
                    output_schema=s.output_schema,
                )
                for s in skills
            ),
        )

    async def serve(
        self,
        scope: Scope,
        name: str,
        arguments: Mapping[str, Any],
        key: str | None = None,
        fence: Fence | None = None,
    ) -> dict[str, Any] | SkillRefusal:
        """Runs a skill, or finds and describes some; what its script has go wrong at this call goes wrong.

        `fence`: an act is refused once one has come for the same plan with a higher number.
        """
        script = self._faults.get(name)
        if script:
            fault = script.popleft()
        else:
            fault = "none"
        if fault == "hangs":
            await sleep(HANGS)
        if fault == "fails":
            raise SkillFailed(f"{name} does not work at the moment")
        if fence is not None and name not in LOOKUPS and self._is_superseded(scope.tenant, fence):
            return SkillRefusal(
                type="superseded",
                skill=name,
                message="Somebody else has taken up this plan since, and acts for it.",
            )
        result = self.call(scope, name, arguments, key)
        if fault == "loses":
            await sleep(HANGS)
        if fault == "lies" and isinstance(result, dict):
            return {**result, "zx": "garbage"}
        return result

    def call(
        self, scope: Scope, name: str, arguments: Mapping[str, Any], key: str | None = None
    ) -> dict[str, Any] | SkillRefusal:
        """Runs a skill, or finds and describes some. `key`: the call is made once, where the skill honours keys."""
        tool = next((tool for tool in self.tools(scope) if tool.name == name), None)
        if tool is None:
            return _unknown(name)
        if not scope.allows(name):
            return SkillRefusal(
                type="skill_not_allowed", skill=name, message="This step does not name this skill."
            )
        if fault := first_misfit(tool.input_schema, dict(arguments)):
            return SkillRefusal(type="bad_arguments", skill=name, message=fault)
        if name == FIND:
            return {"skills": self._find(scope, arguments["query"])}
        if name == LOAD:
            skill = self.manifests(scope).get(arguments["skill_name"])
            if skill:
                return skill.model_dump(mode="json", exclude={"tenants"})
            return _unknown(arguments["skill_name"])
        return self._run(scope.tenant, self._manifests[name], dict(arguments), key)

    def _is_superseded(self, tenant: str, fence: Fence) -> bool:
        plan = (tenant, fence.plan_id)
        highest = self._fences.get(plan, 0)
        self._fences[plan] = max(highest, fence.number)
        return fence.number < highest

    def _run(
        self, tenant: str, skill: Manifest, arguments: dict[str, Any], key: str | None
    ) -> dict[str, Any] | SkillRefusal:
        call = LoggedCall(
            tenant=tenant,
            skill=skill.id,
            arguments=arguments,
            key=key if skill.honours_keys else None,
        )
        if skill.id in LOOKUPS:
            if self._log:
                self._log.add(call)
            return LOOKUPS[skill.id](tenant, arguments)
        ran = self._acts.once(call, partial(act, tenant, skill.id, arguments))
        if (ran.skill, ran.arguments) != (skill.id, arguments):
            return SkillRefusal(
                type="key_reused",
                skill=skill.id,
                message="This idempotency key is that of another call.",
            )
        return ran.result or {}

    def _find(self, scope: Scope, query: str) -> list[dict[str, str]]:
        index = Index(
            self.manifests(scope).values(),
            lambda skill: [(2.0, skill.description), (1.0, skill.words)],
        )
        skills = {skill.id: skill for skill in (*index.search(query).rows, *index.rows)}.values()
        return [{"skill_name": skill.id, "description": skill.description} for skill in skills][
            :CANDIDATES
        ]


def _unknown(name: str) -> SkillRefusal:
    return SkillRefusal(type="unknown_skill", skill=name[:100], message="There is no such skill.")
