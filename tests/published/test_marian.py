"""Marian's weights give our model the logits and the search of transformers."""

import numpy as np
import pytest

from keras_attention import decoding, models

PAD, END = 30, 0
SIZES = {
    "vocab_size": 31,
    "d_model": 14,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 7,
    "decoder_attention_heads": 7,
    "encoder_ffn_dim": 11,
    "decoder_ffn_dim": 11,
    "max_position_embeddings": 29,
    "scale_embedding": True,
    "activation_function": "swish",
    "pad_token_id": PAD,
    "decoder_start_token_id": PAD,
    "eos_token_id": END,
}
IDS = {
    "source_ids": np.array([[5, 7, 11, 13, 0], [17, 6, 0, PAD, PAD]]),
    "target_ids": np.array([[PAD, 19, 5, 9], [PAD, 22, 4, 1]]),
}


@pytest.fixture(scope="module")
def both(reference):
    theirs, folder = reference("MarianMTModel", "MarianConfig", **SIZES)
    return theirs, models.from_pretrained(folder)


def logits_of(theirs, torch):
    source = torch.tensor(IDS["source_ids"])
    return theirs(
        input_ids=source,
        attention_mask=source != theirs.config.pad_token_id,
        decoder_input_ids=torch.tensor(IDS["target_ids"]),
    ).logits


def test_logits_are_equal(both, torch, equal):
    theirs, ours = both
    assert type(ours) is models.Marian
    equal(ours(IDS), logits_of(theirs, torch))


def test_two_vocabularies_are_read(reference, torch, equal):
    theirs, folder = reference(
        "MarianMTModel",
        "MarianConfig",
        **SIZES,
        share_encoder_decoder_embeddings=False,
        decoder_vocab_size=37,
    )
    ours = models.from_pretrained(folder)
    assert ours(IDS).shape == (2, 4, 37)
    equal(ours(IDS), logits_of(theirs, torch))


def search(model, name, max_length=12, **options):
    memory = model.encode(IDS["source_ids"])
    return getattr(decoding, name)(
        model.prepared_step(),
        memory=memory,
        state=model.initial_state(memory, max_length),
        source_mask=memory["mask"],
        max_lengths=np.array([max_length] * 2),
        forbidden_ids=(PAD,),
        # Random weights would write one token again and again.
        no_repeat_ngram_size=1,
        **model.control_ids,
        **options,
    )


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
    np.testing.assert_allclose(np.stack(steps, 1), ours(IDS), atol=1e-4)


def theirs_of(theirs, torch, **options):
    """Ids without START, with our padding up to 12."""
    source = torch.tensor(IDS["source_ids"])
    ids = theirs.generate(
        source,
        attention_mask=source != PAD,
        max_length=13,
        do_sample=False,
        bad_words_ids=[[PAD]],
        no_repeat_ngram_size=1,
        **options,
    ).numpy()[:, 1:]
    return np.pad(ids, ((0, 0), (0, 12 - ids.shape[1])), constant_values=PAD)


def test_greedy_search_writes_the_same(both, torch):
    theirs, ours = both
    expected = theirs_of(theirs, torch, num_beams=1)
    for name, options in (
        ("greedy_search", {}),
        ("beam_search", {"num_beams": 1}),
    ):
        result = search(ours, name, **options)
        np.testing.assert_array_equal(np.asarray(result.ids)[:, 0], expected)
    assert len({*expected[0]}) > 3


def test_a_beam_finds_what_is_at_least_as_probable(both, torch):
    """Their beam has other rules of stopping, and another penalty."""
    theirs, ours = both
    greedy = search(ours, "greedy_search")
    beam = search(ours, "beam_search", num_beams=4, alpha=0.0)
    better = np.asarray(beam.log_probability)[:, 0]
    assert (better >= np.asarray(greedy.log_probability)[:, 0] - 1e-4).all()
    ids = np.asarray(beam.ids)[:, 0]
    expected = theirs_of(
        theirs, torch, num_beams=4, length_penalty=0.0, early_stopping=False
    )
    np.testing.assert_array_equal(ids, expected)


def test_log_probability_reads_their_ids(both, torch):
    theirs, ours = both
    labels = np.array([[19, 5, 9, END], [22, 4, END, PAD]])
    source = torch.tensor(IDS["source_ids"])
    logits = theirs(
        input_ids=source,
        attention_mask=source != PAD,
        labels=torch.tensor(labels),
    ).logits
    chosen = (
        torch.log_softmax(logits, -1)
        .gather(-1, torch.tensor(labels)[..., None])[..., 0]
        .detach()
        .numpy()
    )
    np.testing.assert_allclose(
        ours.log_probability(IDS["source_ids"].astype("int32"), labels),
        np.where(labels == PAD, 0, chosen).sum(axis=1),
        rtol=1e-4,
    )
