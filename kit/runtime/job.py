"""A small structured job for the helper model: one call, one string back; whatever goes wrong is None."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from kit.core.outcome import AgentCall, Answer, Outcome
from kit.models.message import human_text
from kit.runtime.agents.ask_tool import LONGEST_CONTEXT
from kit.runtime.call_model import ModelReply, call_model
from kit.runtime.context import RunContext
from kit.runtime.dispatch import run_to_outcome


@dataclass(frozen=True, slots=True)
class Job:
    """What a helper model is asked for, submitted through a tool it must call: one text, or fields."""

    name: str
    """Of the tool; the argument of a text is the same without `submit_`."""
    description: str
    longest: int
    """Characters of the text; more are cut off."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Name -> JSON schema of fields that take the place of a text, all optional; what is submitted is their JSON."""

    @property
    def field(self) -> str:
        return self.name.removeprefix("submit_")

    @property
    def tool(self) -> dict[str, Any]:
        """The function schema of the tool."""
        text = {"type": "string", "description": self.description, "maxLength": self.longest}
        properties, required = (
            (self.fields, []) if self.fields else ({self.field: text}, [self.field])
        )
        parameters = {"type": "object", "properties": properties, "required": required}
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": parameters,
            },
        }

    def read(self, reply: ModelReply) -> str:
        """Returns what a reply submits; its words where it calls nothing and a text is asked for."""
        forms: list[dict[str, Any]] = []
        for tool_call in reply.calls:
            if tool_call["name"] == self.name:
                forms.append(tool_call["args"])
        if forms:
            args = forms[0]
        else:
            args = {}
        if self.fields:
            return json.dumps(args)
        text = args.get(self.field) or reply.text
        if isinstance(text, str):
            return " ".join(text.split())[: self.longest]
        return ""


PRIOR_CONTEXT = Job(
    "submit_prior_context",
    "One to three sentences in your own words for a specialist who did not see these turns: the "
    "specific products, brands, "
    "stores, offers, receipts, dates, amounts and ids they named, and what the user wants to get done. Facts only.",
    LONGEST_CONTEXT,
)
SUMMARY = Job(
    "submit_summary",
    "A summary that takes the place of these turns: every name, id, amount and date that may be "
    "asked for again, what was "
    "decided, and what is still open. Facts only, in the order they came.",
    3200,
)
QUERY = Job(
    "submit_query",
    "What is left of the user's latest message for one specialist once the others have theirs: "
    "the user's own words for that "
    "part, nothing added, nothing rephrased.",
    2000,
)
JOBS: Mapping[str, Job] = {job.name: job for job in (PRIOR_CONTEXT, SUMMARY, QUERY)}


async def run_job(
    job: Job, material: Sequence[BaseMessage], ask: str, ctx: RunContext, *, news: int = 1
) -> str | None:
    """What the helper model submits about earlier messages; None when it fails, hangs or says nothing.

    `news`: how many of its messages, the request included, are not of earlier turns.
    Its call is a span of this turn and its usage is the caller's; it takes at most the deck's `helper_ms`.
    """

    model = ctx.turn.jobs.get(job.name)
    if model is None:
        return None

    async def work(call: AgentCall, inner: RunContext) -> Outcome:
        thread = [*material, human_text(call.query)]
        reply = await call_model(model, thread, inner, agent=call.agent, purpose="job", news=news)
        return Answer(call_id=call.call_id, agent=call.agent, text=job.read(reply))

    call = AgentCall(call_id=job.name, agent=job.field, query=f"{ask}\n{job.description}")
    outcome = await run_to_outcome(
        work, call, ctx._replace(path=f"{ctx.path}/{job.field}"), ctx.turn.settings.helper_ms / 1000
    )
    if isinstance(outcome, Answer):
        return outcome.text or None
    return None
