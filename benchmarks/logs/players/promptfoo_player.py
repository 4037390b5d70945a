"""Plays the samples with promptfoo: `python promptfoo_player.py FOLDER PROMPTFOO NODE`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from samples import SYSTEMS, TRIES, questions, write_turns

HERE = Path(__file__).resolve().parent
QUIET = {
    name: "1"
    for name in (
        "PROMPTFOO_DISABLE_TELEMETRY",
        "PROMPTFOO_DISABLE_UPDATE",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION",
        "PROMPTFOO_DISABLE_SHARING",
    )
}


def configuration() -> dict[str, Any]:
    """What is played: the same two scores as elsewhere, each a named metric."""
    providers = [
        {"id": "file://promptfoo_provider.mjs", "label": name, "config": {"system": name}}
        for name in SYSTEMS
    ]
    tests = [
        {
            "description": one.sample,
            "vars": {"question": one.question},
            "metadata": {"topic": one.topic},
            "assert": [
                {"type": "equals", "value": one.expected, "metric": "exact"},
                {
                    "type": "javascript",
                    "value": f"{len(one.expected)} / output.length",
                    "metric": "brevity",
                },
            ],
        }
        for one in questions()
    ]
    return {"prompts": ["{{question}}"], "providers": providers, "tests": tests}


def play(out: Path, promptfoo: Path, node: Path) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_turns(folder / "turns.json")
        shutil.copy(HERE / "promptfoo_provider.mjs", folder)
        (folder / "config.json").write_text(json.dumps(configuration()))
        command = [node, promptfoo, "eval", "-c", "config.json", "--repeat", str(TRIES)]
        command += ["--max-concurrency", "1", "--no-cache", "--no-share", "-o", "results.json"]
        env = {"PATH": os.environ["PATH"], "PROMPTFOO_CONFIG_DIR": name, **QUIET}
        # It exits with 100 where a test failed, and some do.
        subprocess.run(command, cwd=folder, env=env, check=False, stdout=subprocess.DEVNULL)
        content = json.loads((folder / "results.json").read_text())
    # Its own set-up says again what the results say, and names the folder.
    content["config"] = {}
    (out / "promptfoo.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    play(*(Path(word).resolve() for word in sys.argv[1:4]))
