"""Google ADK: sub-agents in its single-turn mode, which ADK recommends over AgentTool; an in-memory
session for each turn."""

import asyncio
import logging
import warnings
from typing import Any

warnings.filterwarnings("ignore")  # ADK announces its experimental parts on import

from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from workload import (
    DESC,
    LOOKUP_DESC,
    ORCH_PROMPT,
    SUB_PROMPT,
    History,
    Reply,
    Spec,
    deltas,
    lookup,
    reply,
)

NAME = "Google ADK"
PACKAGES = ["google-adk", "google-genai"]
APP, USER = "bench", "bench"
lookup.__doc__ = LOOKUP_DESC
logging.getLogger("google_adk").setLevel(logging.ERROR)


class _Model(BaseLlm):
    spec: Any
    sid: str = ""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        said = await self._reply(llm_request.contents)
        if stream and not said.calls:
            for _, piece in deltas(said, self.spec.chunks):
                await asyncio.sleep(0)
                yield LlmResponse(
                    content=types.Content(role="model", parts=[types.Part(text=piece)]),
                    partial=True,
                )
        calls = [
            types.FunctionCall(id=call.id, name=call.name, args=call.args) for call in said.calls
        ]
        parts = [types.Part(function_call=call) for call in calls] or [types.Part(text=said.text)]
        yield LlmResponse(content=types.Content(role="model", parts=parts))

    async def _reply(self, contents: Any) -> Reply:
        request = next(
            p.text for c in reversed(contents) if c.role == "user" for p in c.parts if p.text
        )
        answers = [
            part.function_response.response for part in contents[-1].parts if part.function_response
        ]
        return await reply(
            self.spec, self.sid, request, [str(answer["result"]) for answer in answers]
        )


def _content(role: str, text: str) -> types.Content:
    return types.Content(role="user" if role == "user" else "model", parts=[types.Part(text=text)])


class Adapter:
    def __init__(self, spec: Spec):
        own = [lookup] if spec.sub_tool else []
        subs = [
            LlmAgent(
                name=f"ask_{i}", description=DESC.format(id=i), instruction=SUB_PROMPT.format(id=i),
                model=_Model(model="stub", spec=spec, sid=i), tools=list(own), mode="single_turn",
            )
            for i in spec.ids
        ]  # fmt: skip
        lead = LlmAgent(
            name="orchestrator",
            instruction=ORCH_PROMPT,
            model=_Model(model="stub", spec=spec),
            sub_agents=subs,
        )
        self._sessions = InMemorySessionService()
        self._runner = Runner(app_name=APP, agent=lead, session_service=self._sessions)
        self._config = RunConfig(
            streaming_mode=StreamingMode.SSE if spec.chunks else StreamingMode.NONE
        )

    async def turn(self, text: str, history: History = ()) -> str:
        session = await self._sessions.create_session(app_name=APP, user_id=USER)
        for role, said in history:
            author = "user" if role == "user" else "orchestrator"
            await self._sessions.append_event(
                session, Event(author=author, invocation_id="past", content=_content(role, said))
            )
        answer = ""
        async for event in self._runner.run_async(
            user_id=USER,
            session_id=session.id,
            new_message=_content("user", text),
            run_config=self._config,
        ):
            if (
                event.author == "orchestrator"
                and not event.partial
                and event.content
                and event.content.parts[0].text
            ):
                answer = event.content.parts[0].text
        await self._sessions.delete_session(app_name=APP, user_id=USER, session_id=session.id)
        return answer
