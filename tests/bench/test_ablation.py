"""Guards switched on and off: each saves what it is for, and what it costs is shown as well."""

import pytest

from kit.core.language.words import content_words
from kit.settings import HOME
from studies.guard_errors import INVENTED, OTHERWISE, WORDINGS, play_errors, several_parts
from tests.kits import CONSUMER_AGENTS

CASES = HOME / "data" / "cases"


@pytest.mark.req("SAT-4", "PC2-S5.1")
async def test_with_guards_an_invented_call_hardly_ever_runs_and_a_needed_one_is_hardly_ever_dropped():
    asks = several_parts(CASES / "mixed.jsonl", len(CONSUMER_AGENTS))[::12]
    assert not any(
        content_words(f"{INVENTED} {OTHERWISE}") & content_words(ask.user) for ask in asks
    )
    rows = await play_errors(asks, CONSUMER_AGENTS)

    def errors(setting: str, *wordings: str, needed: bool) -> float:
        chosen = [
            row
            for row in rows
            if row.setting == setting and row.needed == needed and row.wording in wordings
        ]
        return sum(row.ran != needed for row in chosen) / len(chosen)

    assert (
        errors("guards on", *WORDINGS[:2], needed=False) < 0.1
        and errors("guards on", *WORDINGS, needed=True) < 0.02
    )
    assert (
        errors("pure loop", *WORDINGS, needed=False) == 1
        and errors("pure loop", *WORDINGS, needed=True) == 0
    )
    assert errors("without overlap", *WORDINGS, needed=False) == 1
