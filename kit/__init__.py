"""subagent-kit: LLM sub-agents from declarative cards, one dispatch under every pattern, honest about failure.

The names below are the public surface; they load on first use, so `import kit` costs almost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kit.core.display.distribution import VERSION

if TYPE_CHECKING:
    from kit.bench.python_grid import GridResult as GridResult
    from kit.bench.python_grid import compare as compare
    from kit.bench.systems.bench import compare_systems as compare_systems
    from kit.bridges.part import Reported as Reported
    from kit.compose.deck import Deck as Deck
    from kit.compose.deck import load_deck as load_deck
    from kit.core.card import AgentCard as AgentCard
    from kit.core.context import Principal as Principal
    from kit.core.context import Session as Session
    from kit.core.errors import KitError as KitError
    from kit.core.event import Event as Event
    from kit.core.outcome import AgentCall as AgentCall
    from kit.core.outcome import Answer as Answer
    from kit.core.outcome import Failure as Failure
    from kit.core.outcome import FanOut as FanOut
    from kit.core.outcome import RoutingDecision as RoutingDecision
    from kit.core.outcome import Usage as Usage
    from kit.core.picture import Picture as Picture
    from kit.core.trace import Span as Span
    from kit.core.trace import Trace as Trace
    from kit.core.trace import trace_of as trace_of
    from kit.experiment_kits import ExperimentKits as ExperimentKits
    from kit.experiment_kits import trace_home as trace_home
    from kit.models.offline import OfflineModel as OfflineModel
    from kit.models.scripted import Line as Line
    from kit.models.scripted import ScriptedModel as ScriptedModel
    from kit.patterns import PATTERNS as PATTERNS
    from kit.runtime.clock import run_virtual as run_virtual
    from kit.runtime.dispatch import dispatch as dispatch
    from kit.runtime.dispatch import fan_out as fan_out
    from kit.runtime.handle import Reply as Reply
    from kit.runtime.handle import Turn as Turn
    from kit.runtime.recording.cassette import Cassette as Cassette
    from kit.runtime.team import Team as Team
    from kit.runtime.team import bind as bind
    from kit.runtime.turn import run_turn as run_turn
    from kit.settings import Settings as Settings
    from kit.wire import Kit as Kit
    from kit.wire import open_kit as open_kit

__version__ = VERSION

_HOME = {
    "AgentCall": "core.outcome",
    "AgentCard": "core.card",
    "Answer": "core.outcome",
    "Cassette": "runtime.recording.cassette",
    "Deck": "compose.deck",
    "Event": "core.event",
    "ExperimentKits": "experiment_kits",
    "Failure": "core.outcome",
    "FanOut": "core.outcome",
    "GridResult": "bench.python_grid",
    "Kit": "wire",
    "KitError": "core.errors",
    "Line": "models.scripted",
    "OfflineModel": "models.offline",
    "PATTERNS": "patterns",
    "Picture": "core.picture",
    "Principal": "core.context",
    "Reply": "runtime.handle",
    "Reported": "bridges.part",
    "RoutingDecision": "core.outcome",
    "ScriptedModel": "models.scripted",
    "Session": "core.context",
    "Settings": "settings",
    "Span": "core.trace",
    "Team": "runtime.team",
    "Trace": "core.trace",
    "Turn": "runtime.handle",
    "Usage": "core.outcome",
    "bind": "runtime.team",
    "compare": "bench.python_grid",
    "compare_systems": "bench.systems.bench",
    "dispatch": "runtime.dispatch",
    "fan_out": "runtime.dispatch",
    "load_deck": "compose.deck",
    "open_kit": "wire",
    "run_turn": "runtime.turn",
    "run_virtual": "runtime.clock",
    "trace_home": "experiment_kits",
    "trace_of": "core.trace",
}

__all__ = sorted(_HOME, key=str.casefold)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"kit.{_HOME[name]}"), name)
    globals()[name] = value
    return value
