"""CTranslate2 translates as our Transformer whose folder it reads."""

import numpy as np
import pytest
import sentencepiece

from keras_attention import Translator, models, tokens

pytestmark = pytest.mark.slow
SIZES = {
    "num_layers": 2,
    "hidden_dim": 14,
    "intermediate_dim": 11,
    "num_heads": 7,
}
NUM_TOKENS = 12
WITHOUT_CONTROLS = [[tokens.PAD_TEXT], [tokens.UNK_TEXT], [tokens.START_TEXT]]


@pytest.fixture
def ctranslate2():
    return pytest.importorskip(
        "ctranslate2", reason="It writes and reads the folders."
    )


@pytest.fixture(
    params=[
        ("Transformer", {}),
        ("Transformer", {"norm_first": False, "activation": "tanh_gelu"}),
        ("Transformer", {"activation": "gelu", "epsilon": 0.1}),
        ("Transformer", {"num_decoder_layers": 1, "activation": "silu"}),
        ("Marian", {}),
    ],
    ids=str,
)
def ours(request, tokenizers, rng):
    name, options = request.param
    source, target = (one.vocabulary_size for one in tokenizers)
    model = getattr(models, name)(target, source, **SIZES, **options)
    model.build()
    for weight in model.trainable_weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))
    return Translator(
        model,
        *tokenizers,
        max_target_factor=0,
        max_target_offset=NUM_TOKENS + 1,
        # Random weights would write one token again and again.
        no_repeat_ngram_size=1,
    )


@pytest.fixture
def theirs(ctranslate2, ours, tmp_path):
    """Their translator, and the pieces of texts that it reads."""
    folder = ours.export_ctranslate2(tmp_path / "folder")
    assert folder == tmp_path / "folder"
    source, target = (
        sentencepiece.SentencePieceProcessor(
            model_file=str(folder / f"{side}.spm")
        )
        for side in ("source", "target")
    )
    return ctranslate2.Translator(str(folder)), source, target


def test_greedy_search_writes_the_same(ours, theirs, sentences):
    translator, source, target = theirs
    some = [text for text in sentences[-20:] if text.strip()]
    answers = translator.translate_batch(
        source.encode(some, out_type=str),
        beam_size=1,
        max_decoding_length=NUM_TOKENS,
        suppress_sequences=WITHOUT_CONTROLS,
        no_repeat_ngram_size=1,
    )
    theirs_are = [target.decode(one.hypotheses[0]) for one in answers]
    ours_are = ours(some, num_beams=1)
    assert theirs_are == ours_are
    assert len({*ours_are}) > 1


def test_references_are_as_probable(ours, theirs, sentences):
    translator, source, target = theirs
    texts, references = sentences[:3], ["eins", "zwei", "drei"]
    scores = translator.score_batch(
        source.encode(texts, out_type=str),
        target.encode(references, out_type=str),
    )
    np.testing.assert_allclose(
        [sum(one.log_probs) for one in scores],
        [
            log_probability
            for log_probability, _ in ours.score(texts, references)
        ],
        rtol=1e-4,
    )


def test_what_cannot_be_written_is_refused(
    ctranslate2, random_translator, tmp_path
):
    with pytest.raises(ValueError, match="Transformer and Marian.*a RNNSearch"):
        random_translator("rnnsearch").export_ctranslate2(tmp_path / "new")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    with pytest.raises(ValueError, match="old is not empty. Name a new"):
        random_translator("transformer").export_ctranslate2(tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
