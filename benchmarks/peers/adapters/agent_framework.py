"""Microsoft Agent Framework: `Agent.as_tool` over a stub chat client that runs function calls."""

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

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

NAME = "MS Agent Framework"
PACKAGES = ["agent-framework-core"]


class _Client(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, spec: Spec, sid: str = ""):
        super().__init__()
        self._spec, self._sid = spec, sid

    def _inner_get_response(
        self, *, messages: Any, stream: bool = False, options: Any = None, **kwargs: Any
    ) -> Any:
        return (
            self._build_response_stream(self._updates(messages))
            if stream
            else self._response(messages)
        )

    async def _reply(self, messages: Any) -> Reply:
        request = next(message.text for message in reversed(messages) if message.role == "user")
        place = len(messages)
        while messages[place - 1].role == "tool":
            place -= 1
        parts = [part for message in messages[place:] for part in message.contents]
        results = [str(part.result) for part in parts if part.type == "function_result"]
        return await reply(self._spec, self._sid, request, results)

    async def _response(self, messages: Any) -> ChatResponse:
        said = await self._reply(messages)
        contents = [_call(call.id, call.name, call.json) for call in said.calls] or [
            Content.from_text(said.text)
        ]
        return ChatResponse(
            messages=[Message(role="assistant", contents=contents)], response_id="r"
        )

    async def _updates(self, messages: Any) -> Any:
        said = await self._reply(messages)
        for place, piece in deltas(said, self._spec.chunks or 1):
            await asyncio.sleep(0)
            call = None if place is None else said.calls[place]
            content = Content.from_text(piece) if call is None else _call(call.id, call.name, piece)
            yield ChatResponseUpdate(role="assistant", contents=[content], response_id="r")


def _call(call_id: str, name: str, arguments: str) -> Content:
    return Content.from_function_call(call_id=call_id, name=name, arguments=arguments)


def _message(role: str, text: str) -> Message:
    return Message(role=role, contents=[Content.from_text(text)])


class Adapter:
    def __init__(self, spec: Spec):
        self._streams = spec.chunks > 0
        own = (
            [tool(lookup, name="lookup", description=LOOKUP_DESC, approval_mode="never_require")]
            if spec.sub_tool
            else None
        )
        subs = [
            Agent(
                client=_Client(spec, i),
                name=i,
                description=DESC.format(id=i),
                instructions=SUB_PROMPT.format(id=i),
                tools=own,
            )
            for i in spec.ids
        ]
        tools = [
            sub.as_tool(name=f"ask_{sub.name}", arg_name="request", stream_callback=self._heard)
            for sub in subs
        ]
        self._agent = Agent(
            client=_Client(spec), name="orchestrator", instructions=ORCH_PROMPT, tools=tools
        )

    @property
    def _heard(self) -> Any:
        return (lambda update: None) if self._streams else None

    async def turn(self, text: str, history: History = ()) -> str:
        messages = [*(_message(role, said) for role, said in history), _message("user", text)]
        if not self._streams:
            return (await self._agent.run(messages)).text
        stream = self._agent.run(messages, stream=True)
        async for _ in stream:
            pass
        return (await stream.get_final_response()).text
