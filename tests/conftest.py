"""Async tests run on the virtual clock, where waiting costs nothing; `@pytest.mark.realtime` takes a real loop."""

import asyncio
import gc
import inspect
import tracemalloc

import pytest

from kit.runtime.clock import run_virtual

gc.disable()  # what is imported stays: a third of the time of collecting the tests went into looking for garbage in it


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names if name in pyfuncitem.funcargs}
    run = asyncio.run if pyfuncitem.get_closest_marker("realtime") else run_virtual
    run(pyfuncitem.obj(**arguments))
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    if tracemalloc.is_tracing():
        tracemalloc.stop()
        pytest.fail(
            "the test left tracemalloc on: every later test of this process would take six times as long"
        )
