"""GPT-2's weights give our language model the logits of transformers."""

import keras
import numpy as np
import pytest

from keras_attention import decoding, models

END = 30
SIZES = {
    "vocab_size": 31,
    "n_positions": 13,
    "n_embd": 14,
    "n_layer": 2,
    "n_head": 7,
    "bos_token_id": END,
    "eos_token_id": END,
}
IDS = np.array([[END, 7, 11, 13, 3], [17, 6, 29, 0, 1]])


@pytest.fixture(scope="module")
def both(reference):
    theirs, folder = reference("GPT2LMHeadModel", "GPT2Config", **SIZES)
    return theirs, models.from_pretrained(folder)


def test_logits_are_equal(both, torch, equal):
    theirs, ours = both
    assert type(ours) is models.TransformerLanguageModel
    equal(ours(IDS), theirs(torch.tensor(IDS)).logits)


@pytest.mark.parametrize(
    "choices",
    [
        {"n_inner": 11, "activation_function": "gelu"},
        {"activation_function": "relu", "layer_norm_epsilon": 0.1},
    ],
)
def test_choices_of_the_configuration_are_read(
    reference, torch, equal, choices
):
    theirs, folder = reference(
        "GPT2LMHeadModel", "GPT2Config", **SIZES, **choices
    )
    ours = models.from_pretrained(folder)
    equal(ours(IDS), theirs(torch.tensor(IDS)).logits)


def test_a_body_alone_has_the_same_weights(reference, torch, equal):
    """As on the hub: no name begins with "transformer."."""
    theirs, folder = reference("GPT2Model", "GPT2Config", **SIZES)
    hidden = theirs(torch.tensor(IDS)).last_hidden_state
    equal(
        models.from_pretrained(folder)(IDS),
        hidden @ theirs.wte.weight.T,
    )


def test_steps_with_a_cache_are_the_call(both):
    _, ours = both
    state = ours.initial_state(2, 5)
    steps = []
    for position in range(5):
        logits, state = ours.step(IDS[:, position], state)
        steps.append(logits)
    np.testing.assert_allclose(np.stack(steps, 1), ours(IDS), atol=1e-4)


def test_greedy_search_continues_as_theirs(both, torch):
    """A text begins behind END, as in the training of GPT-2."""
    theirs, ours = both
    prompts = np.array([[7, 11, 13], [17, 6, 29]])
    result = decoding.greedy_search(
        decoding.without_source(ours.step),
        memory=(),
        state=ours.initial_state(2, 12),
        source_mask=None,
        max_lengths=np.array([12, 12]),
        prefix_ids=prompts,
        **ours.control_ids,
    )
    given = np.pad(prompts, ((0, 0), (1, 0)), constant_values=END)
    expected = theirs.generate(
        torch.tensor(given),
        attention_mask=torch.ones(2, 4, dtype=torch.int64),
        max_length=12,
        do_sample=False,
        pad_token_id=END,
    ).numpy()[:, 1:]
    ids = np.asarray(result.ids)[:, 0]
    # At its limit our search ends, and theirs stops.
    np.testing.assert_array_equal(ids[:, :11], expected[:, :11])
    assert len(set(expected[0])) > 3


def test_a_keras_file_keeps_the_ids(both, tmp_path):
    _, ours = both
    ours.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.control_ids == {"pad_id": END, "start_id": END, "end_id": END}
    np.testing.assert_array_equal(loaded(IDS), ours(IDS))


def test_another_attention_is_refused(reference):
    _, folder = reference(
        "GPT2LMHeadModel",
        "GPT2Config",
        **SIZES,
        scale_attn_by_inverse_layer_idx=True,
    )
    with pytest.raises(ValueError, match="can only have scale_attn_by_inv.*F"):
        models.from_pretrained(folder)
