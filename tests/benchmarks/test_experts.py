"""`benchmarks/experts.py` compares equal costs, and its models learn."""

import experts
import pytest

WIDTH, NETWORK, EXPERT = 128, 512, 256


def test_experts_have_more_weights_and_only_gates_to_multiply():
    one, many = (experts.language_model(11, count) for count in (1, 16))
    network = WIDTH * NETWORK + NETWORK + NETWORK * WIDTH + WIDTH
    expert = WIDTH * EXPERT + EXPERT + EXPERT * WIDTH + WIDTH
    gates = 2 * WIDTH * 16
    # The weights of two layers, each with a gate for choices and for noise.
    more = 2 * (16 * expert + gates - network)
    assert many.count_params() - one.count_params() == more
    # Two experts of half the width.
    assert experts.multiplications(1) == 2 * (2 * WIDTH * NETWORK)
    assert experts.multiplications(16) == 2 * (2 * WIDTH * NETWORK + WIDTH * 16)


@pytest.mark.slow
@pytest.mark.parametrize("count", ["1", "16"])
def test_a_text_that_repeats_itself_is_learned(
    count, tmp_path, monkeypatch, capsys
):
    line = "zero one two three four five six seven eight nine\n"
    for name, lines in (("train", 1000), ("valid", 50), ("test", 1)):
        (tmp_path / f"{name}.txt").write_text(line * lines)
    arguments = ["experts.py", str(tmp_path), "--experts", count]
    monkeypatch.setattr("sys.argv", [*arguments, "--epochs", "3"])
    experts.main()
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("epoch 3: validation perplexity ")
    # A guess among ten words has 10 or more.
    assert float(last.split()[-1]) < 3
