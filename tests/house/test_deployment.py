"""The container files name what there is: targets, settings, and commands that the kit has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.cli import main

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
COMMANDS: list[list[str]] = [
    json.loads(command) for command in re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
]
TARGETS = re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.MULTILINE)
for service in ("api", "monitor"):
    COMMANDS.append(COMPOSE["services"][service]["command"].split())


def test_every_service_is_built_from_a_target_and_waits_for_services_that_there_are() -> None:
    services = COMPOSE["services"]
    built = {name: service["build"] for name, service in services.items() if "build" in service}
    assert {name: build["target"] for name, build in built.items()} == {
        "app": "app",
        "api": "api",
        "worker": "worker",
        "monitor": "worker",
    }
    # A build without a target makes the last one.
    assert TARGETS[-1] == "app" and {"api", "worker"} <= set(TARGETS)
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            assert volume.partition(":")[0] in COMPOSE["volumes"]


def test_every_setting_of_a_container_is_one_that_is_read() -> None:
    read = (ROOT / "kit" / "settings.py").read_text() + DOCKERFILE
    names = {
        name
        for service in ("app", "api", "worker", "monitor")
        for name in COMPOSE["services"][service]["environment"]
    }
    assert len(names) > 10
    assert {name for name in names if f'"{name}"' not in read} == set()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_container_runs_a_command_that_there_is(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command[:3] == ["python", "-m", "kit"]
    with pytest.raises(SystemExit) as ended:
        main([command[3], "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    for word in command[4:]:
        assert not word.startswith("-") or word in printed, word
