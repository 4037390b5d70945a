"""One skill call of a step: allowed or refused, known again by its key, written down, and not read
whole where it is long."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from kit.planning.scope import StepScope
from kit.planning.services import REASONS, PlanServices
from kit.stores.documents.protocol import EventFilter
from kit.tools.large_result import tell_file, write_sample
from kit.tools.mcp.json_schema import SchemaTooCostly, find_misfit
from kit.tools.skill import SkillFault, SkillManifest, SkillResult, canonical_text
from kit.tools.tool import UNAVAILABLE, ToolResult

LARGE = 50_000
"""Bytes of a result from which on the model reads its beginning alone, and gets the rest by a script."""
PAUSE = 0.5
"""Seconds after which a call whose connection broke is made once more."""
CALL = "skill.called"
START = "skill.started"
"""Event that stands in the log before a skill acts that may not be called twice (decisions 41)."""


async def call_skill(
    scope: StepScope, services: PlanServices, skill: str, arguments: Mapping[str, Any]
) -> ToolResult:
    """Calls a skill that the step allows. Whatever else is asked for, or goes wrong, is a fault,
    and the scope says which."""
    if skill not in scope.manifests:
        return await _refuse(scope, skill)
    if scope.uncertain:
        return _uncertain(scope, scope.uncertain)
    manifest = scope.manifests[skill]
    try:
        misfit = await find_misfit(manifest.input_schema, dict(arguments))
    except SchemaTooCostly as error:
        detail = f"its input schema cannot be used: {error}"
        return _fault(
            scope, SkillFault(skill=skill, reason="schema_mismatch", detail=detail, sent=False)
        )
    if misfit:
        return _fault(scope, SkillFault(skill=skill, reason="bad_arguments", detail=misfit))
    key, call = _key(scope, skill, arguments)
    if not manifest.repeatable and not await _may_act(scope, services, skill, key):
        return _uncertain(scope, skill)
    outcome = await _attempt(scope, manifest, arguments, key)
    is_broken_off = isinstance(outcome, SkillFault) and outcome.reason == "gone"
    # Calling it twice does what calling it once does. A call that ran out of time has had all that one may take: to
    # wait as long again is for its executor to say, who may make it again under the same key.
    if is_broken_off and manifest.idempotent:
        await asyncio.sleep(PAUSE)
        outcome = await _attempt(scope, manifest, arguments, key, number=2)
    if _is_lost(manifest, outcome):
        return _uncertain(scope, skill)
    if not _may_have_acted(outcome):
        scope.open_calls.pop(call, None)  # the same call, made beside it, has the same key
    if isinstance(outcome, SkillFault):
        return _fault(scope, outcome)
    scope.fault = None
    return await _tell(scope, services, outcome)


async def _attempt(
    scope: StepScope,
    manifest: SkillManifest,
    arguments: Mapping[str, Any],
    key: str,
    number: int = 1,
) -> SkillResult | SkillFault:
    """Makes a call once, and writes down how it ended. `number`: which attempt of the call this is."""
    try:
        outcome = await scope.skills.call(manifest.id, arguments, key)
    except BaseException:  # stopped, or out of time, in the middle of it
        if not manifest.repeatable:
            scope.uncertain = manifest.id
        raise
    outcome = await _check(manifest, outcome)
    details: dict[str, Any] = {}
    if _is_lost(manifest, outcome):
        details["uncertain"] = True
    if number > 1:
        details["attempt"] = number
    has_result = isinstance(outcome, SkillResult)
    size = outcome.size_bytes if has_result else 0
    await scope.journal.write(
        CALL,
        skill_id=outcome.skill,
        input_size_bytes=outcome.input_size_bytes,
        response_size_bytes=size,
        duration_ms=outcome.duration_ms,
        large_response_triggered=size >= LARGE,
        status="ok" if has_result else outcome.reason,
        **details,
    )
    return outcome


def _key(scope: StepScope, skill: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the key of a call, the same when the step is resumed, or the call made again that
    came to no known end."""
    call = f"{skill} {canonical_text(dict(arguments))}"
    if call not in scope.open_calls:
        scope.calls += 1
        scope.open_calls[call] = f"{scope.task.id}:{skill}:{scope.calls}"
    return scope.open_calls[call], call


async def _may_act(scope: StepScope, services: PlanServices, skill: str, key: str) -> bool:
    """Notes that a skill is about to act that may not be called twice; False where a process before
    this one has begun that."""
    of_skill = EventFilter(
        tenant_id=scope.task.principal.tenant_id,
        task_id=scope.task.id,
        event_type=START,
        skill_id=skill,
    )
    for event in await services.documents.events.query(of_skill):
        if event.event_id not in scope.act_keys:
            return False
    start = await scope.journal.write(START, event_id=key, skill_id=skill, fence=scope.fence)
    if start.payload != {"fence": scope.fence}:
        # Another process, which took the plan up in the meantime, was quicker: an event is kept once.
        return False
    scope.act_keys.add(key)
    return True


async def _check(
    manifest: SkillManifest, outcome: SkillResult | SkillFault
) -> SkillResult | SkillFault:
    """Holds a result against the manifest that the plan was made from; what breaks it is no result."""
    if isinstance(outcome, SkillFault):
        return outcome
    try:
        misfit = await find_misfit(manifest.output_schema, outcome.content)
    except SchemaTooCostly as error:
        detail = f"its output schema cannot be used: {error}"
    else:
        if misfit is None:
            return outcome
        # What follows quotes the skill, and the planner reads this.
        field = misfit.partition(": ")[0]
        detail = f"its result is not what its output schema promises, at {field}"
    return SkillFault(
        skill=manifest.id,
        reason="schema_mismatch",
        detail=detail,
        input_size_bytes=outcome.input_size_bytes,
        duration_ms=outcome.duration_ms,
    )


def _may_have_acted(outcome: SkillResult | SkillFault) -> bool:
    """Whether a call that gave nothing may have run all the same."""
    return isinstance(outcome, SkillFault) and (
        outcome.uncertain or outcome.reason in ("schema_mismatch", "oversized")
    )


def _is_lost(manifest: SkillManifest, outcome: SkillResult | SkillFault) -> bool:
    """Whether nobody knows what a call has done, and it may not be made again (decisions 41)."""
    if not isinstance(outcome, SkillFault):
        return False
    if outcome.reason == "key_reused":
        return True
    # One that answers with an error may have acted before it came to that.
    is_open = outcome.reason == "failed" or _may_have_acted(outcome)
    return is_open and not manifest.repeatable


async def _tell(scope: StepScope, services: PlanServices, outcome: SkillResult) -> ToolResult:
    """Words a result for the model: whole, or where it is long, how the file begins that it stands in."""
    if outcome.size_bytes < LARGE:
        return ToolResult(text=outcome.text)
    lines = outcome.text
    if outcome.content is not None:
        # In lines: the sample is the first of them, and a script reads the file line by line.
        lines = json.dumps(outcome.content, indent=1, ensure_ascii=False)
    try:
        file_id, sample = await asyncio.to_thread(write_sample, lines, scope.task, services.files)
    except OSError as error:
        scope.fault = f"{outcome.skill}: its {outcome.size_bytes:,} bytes found no place: {error}"
        return ToolResult(text=UNAVAILABLE, fault="unavailable", detail=scope.fault)
    await scope.journal.write(
        "large_response.detected",
        file_id=file_id,
        size_bytes=outcome.size_bytes,
        threshold_bytes=LARGE,
        strategy="python_extract",
    )
    return ToolResult(
        text=tell_file(
            f"The result of {outcome.skill} has {outcome.size_bytes:,} bytes", file_id, sample
        )
    )


async def _refuse(scope: StepScope, skill: str) -> ToolResult:
    """Refuses a skill that the step does not allow; nobody outside of this process learns of it."""
    await scope.journal.write(
        "skill.refused", skill_id=skill[:100] or None, status="skill_not_allowed"
    )
    scope.fault = f"it called {skill[:100]!r}, which this step does not allow"
    text = f"This step may not call that. It may call: {', '.join(scope.manifests)}."
    return ToolResult(text=text, fault="not_allowed", detail=scope.fault)


def _uncertain(scope: StepScope, skill: str) -> ToolResult:
    scope.uncertain = skill
    scope.fault = f"{skill}: a call of it came to no known end; it may have acted"
    text = f"Nobody knows whether {skill} has done what it was called for. It is not called again: end the step here."
    return ToolResult(text=text, fault="uncertain", detail=scope.fault)


def _fault(scope: StepScope, fault: SkillFault) -> ToolResult:
    """Words a fault: what the model can put right is told it, the rest goes to the trace and the planner."""
    scope.fault = f"{fault.skill}: {fault.reason}: {fault.detail}"
    if fault.reason == "bad_arguments":
        text = f"This call was not made: {fault.detail}"
    else:
        text = f"{fault.skill} gave nothing: {fault.reason}."
    return ToolResult(text=text, fault=REASONS[fault.reason], detail=scope.fault)
