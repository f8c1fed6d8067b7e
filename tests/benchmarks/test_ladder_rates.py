"""`benchmarks/ladder_rates.py`: a model without attention, and its table."""

import json

import ladder_rates
import numpy as np

from keras_attention import config

V = 23


def without_attention(rng):
    model = ladder_rates.WithoutAttention(
        V, num_layers=2, embedding_dim=7, hidden_dim=5, num_positions=16
    )
    model.build()
    model.set_weights(
        [rng.normal(scale=0.5, size=w.shape) for w in model.weights]
    )
    return model


def test_each_place_sees_its_own_column_and_its_steps_are_its_call():
    model = without_attention(np.random.default_rng(3))
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    target_ids = np.array([[2, 19, 5, 9, 8, 4], [2, 22, 4, 6, 7, 9]])
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    logits, weights = model.call_with_attention(inputs)
    np.testing.assert_allclose(model(inputs), logits, atol=1e-6)
    memory = model.encode(source_ids)
    state = model.initial_state(memory, 6)
    for t in range(6):
        ours, state, here = model.step(target_ids[:, t], memory, state)
        np.testing.assert_allclose(ours, logits[:, t], atol=1e-5)
        for row, length in enumerate([5, 3]):
            expected = np.eye(5)[min(t, length - 1)]
            for layer in range(2):
                np.testing.assert_array_equal(here[row, layer], expected)
                np.testing.assert_array_equal(weights[row, layer, t], expected)


def test_every_row_is_a_configuration():
    ladder = config.read("multi30k_en_de_ladder")
    for row, own in ladder_rates.ROWS.items():
        choices = config.resolve(config.make(**ladder | {"model": row} | own))
        assert choices.data.target == "de"


def test_the_table_has_the_best_validation_of_each_run(tmp_path, capsys):
    bleus = {"a_0.002": [1.0, 5.0, 4.0], "b_0.004": [3.0, 7.0]}
    for run, values in bleus.items():
        logs = [
            {"loss": 3 - i, "val_loss": 2 + i, "val_bleu": bleu}
            for i, bleu in enumerate(values)
        ]
        (tmp_path / run).mkdir()
        (tmp_path / run / "history.json").write_text(json.dumps(logs))
    (tmp_path / "begun").mkdir()
    ladder_rates.print_table(tmp_path)
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first == "| `b_0.004` | 2 | 2.000 | 2.000 | 7.00 |"
    assert second == "| `a_0.002` | 3 | 1.000 | 2.000 | 5.00 |"
