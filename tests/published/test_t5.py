"""T5's weights give our model the logits and the search of transformers."""

import numpy as np
import pytest

from keras_attention import decoding, layers, models

PAD, END = 0, 1
SIZES = {
    "vocab_size": 31,
    "d_model": 14,
    "d_kv": 3,
    "d_ff": 11,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 5,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "decoder_start_token_id": PAD,
}
FIRST_VERSION = {"feed_forward_proj": "relu"}
VERSION_1_1 = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
IDS = {
    "source_ids": np.array([[5, 7, 11, 13, 4, 9, 3, 8, 6, 2, 7, 1]] * 2),
    "target_ids": np.array([[PAD, 19, 5, 9], [PAD, 22, 4, 2]]),
}
IDS["source_ids"][1, 3:] = [END] + [PAD] * 8


def logits_of(theirs, torch):
    source = torch.tensor(IDS["source_ids"])
    return theirs(
        input_ids=source,
        attention_mask=source != PAD,
        decoder_input_ids=torch.tensor(IDS["target_ids"]),
    ).logits


@pytest.fixture(scope="module", params=["t5", "t5 1.1", "mt5"])
def both(reference, request):
    names = ("T5ForConditionalGeneration", "T5Config")
    if request.param == "mt5":
        names = ("MT5ForConditionalGeneration", "MT5Config")
    version = FIRST_VERSION if request.param == "t5" else VERSION_1_1
    theirs, folder = reference(*names, **SIZES, **version)
    return theirs, models.from_pretrained(folder)


def test_logits_are_equal(both, torch, equal):
    theirs, ours = both
    assert type(ours) is models.T5
    equal(ours(IDS), logits_of(theirs, torch), 1e-4)


def test_steps_with_a_cache_are_the_call(both):
    _, ours = both
    memory = ours.encode(IDS["source_ids"])
    state = ours.initial_state(memory, 5)
    steps = []
    for position in range(4):
        logits, state, _ = ours.step(
            IDS["target_ids"][:, position], memory, state
        )
        steps.append(logits)
    np.testing.assert_allclose(
        np.stack(steps, 1), ours(IDS), rtol=1e-4, atol=1e-4
    )


def test_greedy_search_writes_the_same(both, torch):
    theirs, ours = both
    memory = ours.encode(IDS["source_ids"])
    result = decoding.greedy_search(
        ours.prepared_step(),
        memory=memory,
        state=ours.initial_state(memory, 12),
        source_mask=memory["mask"],
        max_lengths=np.array([12, 12]),
        forbidden_ids=(PAD,),
        # Random weights would write one token again and again.
        no_repeat_ngram_size=1,
        **ours.control_ids,
    )
    source = torch.tensor(IDS["source_ids"])
    expected = theirs.generate(
        source,
        attention_mask=source != PAD,
        max_length=13,
        do_sample=False,
        bad_words_ids=[[PAD]],
        no_repeat_ngram_size=1,
    ).numpy()[:, 1:]
    ids = np.asarray(result.ids)[:, 0, : expected.shape[1]]
    # At its limit our search ends, and theirs stops.
    np.testing.assert_array_equal(ids[:, :11], expected[:, :11])
    assert len({*expected[0]}) > 3


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_are_theirs(torch, bidirectional):
    modeling = pytest.importorskip("transformers.models.t5.modeling_t5")
    distances = np.arange(-300, 301)
    expected = modeling.T5Attention._relative_position_bucket(
        torch.tensor(distances), bidirectional, 32, 128
    )
    ours = layers.BucketedBias(32, 128, bidirectional).buckets(distances)
    np.testing.assert_array_equal(ours, expected.numpy())
