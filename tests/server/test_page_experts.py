"""What the page shows of a mixture of experts, in a browser."""

import keras
import numpy as np
import pytest
import tiny
from browsing import texts

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention import layers  # noqa: E402
from keras_attention.server import model_configs  # noqa: E402
from keras_attention.serving import translator  # noqa: E402

TEXT = "one two three"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(tokenizers, run_server, tmp_path_factory):
    """A server of a translator with experts, before any training."""
    keras.utils.set_random_seed(3)
    source, target = (one.vocabulary_size for one in tokenizers)
    experts = layers.MixtureOfExperts(5, 3, num_chosen=2)
    model = tiny.create("transformer", target, source, feed_forward=experts)
    model.build()
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.3, size=variable.shape))
    folder = tmp_path_factory.mktemp("page") / "experts"
    model = translator.Translator(model, *tokenizers, max_target_offset=4)
    model.export(folder)
    with run_server([model_configs.ModelConfig("experts", folder)]) as client:
        yield client


@pytest.fixture(scope="module")
def served(client, chromium):
    return f"http://127.0.0.1:{client.rest_port}/"


def test_the_experts_of_each_token_are_a_map(open_page, client):
    inputs = {"text": [TEXT], "answer": [""]}
    request = {"signature_name": "inspect", "inputs": inputs}
    status, _, found = client.predict("experts", **request)
    assert status == 200
    page = open_page("experts")
    page.fill("#text", TEXT)
    page.wait_for_selector(".rows.large button.shaded")
    # Layers have names, and no heads.
    for side, layer in (("encoder", 1), ("decoder", 2)):
        name = f"{side}_experts, layer {layer}"
        page.get_by_role("button", name=name, exact=True).click()
        assert texts(page, "#opened h3") == [name]
        page.locator("#opened summary").click()
        head = texts(page, "#opened thead th")
        assert head[-5:] == [f"expert {number}" for number in range(5)]
        shares = found["outputs"][f"{side}_experts"][0][layer - 1][0]
        rows = page.locator("#opened tbody tr").all()
        shown = [row.locator("td").all_text_contents() for row in rows]
        assert shown == [[f"{one:.2f}" for one in row] for row in shares]
