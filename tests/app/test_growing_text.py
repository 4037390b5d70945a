"""A text that grows on the page is cut into blocks, and only the last one is drawn again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from kit.ui.chat.growing_text import BLOCK, blocks

PIECES = some.sampled_from(
    [
        "word " * 90,
        "\n\n",
        "\n",
        "- item",
        "1. item",
        "**bold**",
        "```",
        "| cell |",
        "> said",
        "# head",
        "ü",
    ]
)
LONG = "word " * 500


@pytest.mark.req("K-24")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(some.lists(PIECES, max_size=60), some.integers(min_value=0, max_value=20_000))
def test_a_text_that_grows_keeps_its_finished_blocks(pieces: list[str], length: int):
    text = "".join(pieces)
    whole, start = blocks(text), blocks(text[:length])
    assert "\n\n".join(whole) == text
    assert whole[: len(start) - 1] == start[:-1]
    assert all(len(block) >= BLOCK for block in whole[:-1])


@pytest.mark.parametrize(
    "after", ["- item", "1. item", "| cell |", "> said", "  more of the item", "```\ncode"]
)
def test_no_block_ends_within_a_list_a_table_a_quotation_or_before_code(after: str):
    assert blocks(f"{LONG}\n\n{after}") == [f"{LONG}\n\n{after}"]
    assert blocks(f"```\n{LONG}\n\nmore code") == [f"```\n{LONG}\n\nmore code"]
    assert blocks(f"{LONG}\n\nMore") == [LONG, "More"]
