"""Pictures are numbers: their requests, their batches, their errors."""

import keras
import numpy as np
import pytest
import tiny

from keras_attention.server import execution, model_configs, versions
from keras_attention.serving import kinds, labeller

SHAPE = (14, 2)
CLASSES = ["cat", "dog", "fox", "owl", "rat"]


@pytest.fixture(scope="module")
def live():
    keras.utils.set_random_seed(3)
    model = tiny.create("vision_transformer")
    model.build()
    for variable in model.trainable_variables:
        variable.assign(keras.random.normal(variable.shape))
    return labeller.Labeller.of_images(model, CLASSES, SHAPE)


@pytest.fixture(scope="module")
def version(live, tmp_path_factory):
    return live.export(tmp_path_factory.mktemp("pictures") / "animals")


def pictures(count):
    return np.random.default_rng(5).random((count, *SHAPE), "float32")


def test_pictures_are_served(live, version, run_server):
    rows = pictures(3)
    expected = live(rows)
    config = model_configs.ModelConfig("animals", version.parent)
    with run_server([config]) as client:
        # Each as it is, or by the name of the input.
        for instances in (
            rows.tolist(),
            [{"image": row} for row in rows.tolist()],
        ):
            status, _, answer = client.predict("animals", instances=instances)
            assert status == 200
            found = [row["label"] for row in answer["predictions"]]
            assert found == expected
        _, _, answer = client.predict(
            "animals",
            signature_name="with_attention",
            inputs={"image": rows.tolist()},
        )
        assert np.shape(answer["outputs"]["attention"]) == (3, 2, 7, 8, 8)
        status, _, answer = client.predict("animals", instances=[[[1.0]]])
        assert status == 400 and "[-1,14,2]" in answer["error"]
        _, _, answer = client.request("/v1/models/animals/metadata")
    assert answer["metadata"]["kind"]["numbers"] == {"image": [14, 2]}


def test_an_answer_is_that_of_its_request_alone(live, version):
    loaded = versions.load(version, 1)
    signature = loaded.signatures[kinds.DEFAULT]
    assert signature.is_batched
    requests = [{"image": rows} for rows in np.split(pictures(5), [1, 3])]
    together = execution.split_on_failure(loaded, signature, requests)
    for request, answer in zip(requests, together, strict=True):
        labels = [label.decode() for label in answer["label"]]
        assert labels == live(request["image"])
        np.testing.assert_allclose(
            answer["probabilities"],
            live.probabilities(request["image"]),
            atol=1e-5,
        )
    assert len(set(live(pictures(5)))) > 1
