"""What a long answer costs the server for each viewer, over Streamlit's own socket."""

from pathlib import Path

import pytest

from tests.browser.raw import processor, raw_visitor
from tests.browser.stage import told, within
from tests.streamlit_server import serve

pytestmark = pytest.mark.browser


def test_an_answer_of_54_kb_streams_for_under_a_second_and_5_mb_a_viewer(tmp_path: Path):
    with serve(tmp_path, entry="tests/browser/long_answer.py") as app:
        with raw_visitor(app.url) as viewer:
            viewer.run()  # all is imported
        for paragraphs in (60, 1):
            with raw_visitor(app.url) as viewer:
                viewer.address = f"paragraphs={paragraphs}"
                before = processor(app.process.pid)
                viewer.run()
                within(
                    f"54 kB in {paragraphs} paragraphs, of a core",
                    processor(app.process.pid) - before,
                    1,
                )
                told("the same, sent", viewer.received / 1000, "kB")
                assert 54_000 < viewer.received < 5_000_000
