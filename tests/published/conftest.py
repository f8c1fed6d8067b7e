"""Folders of random weights, as the package transformers saves them."""

import os

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A function: a random model of transformers, and its saved folder."""
    transformers = pytest.importorskip(
        "transformers", reason="The reference is the package transformers."
    )
    torch = pytest.importorskip(
        "torch", reason="The reference needs PyTorch, for a CPU."
    )
    pytest.importorskip("safetensors", reason="It reads the weights.")
    transformers.utils.logging.disable_progress_bar()

    def save(model_name, config_name, scale=0.3, **arguments):
        torch.manual_seed(0)
        config = getattr(transformers, config_name)(**arguments)
        model = getattr(transformers, model_name)(config).eval()
        with torch.no_grad():
            # All weights are large, and none is 1 or 0 as at first: no two
            # can be mixed up.
            for _, weight in sorted(model.named_parameters()):
                if weight.requires_grad:
                    weight.normal_(std=scale)
            if hasattr(model, "final_logits_bias"):
                model.final_logits_bias.normal_(std=scale)
        folder = tmp_path_factory.mktemp(config_name)
        model.save_pretrained(folder)
        return model, folder

    return save


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def equal():
    """Numbers of PyTorch and ours are equal, but for rounding."""

    def check(ours, theirs, tolerance=2e-5):
        theirs = theirs.detach().numpy()
        assert np.ptp(theirs) > 0.5
        np.testing.assert_allclose(
            np.asarray(ours), theirs, rtol=tolerance, atol=tolerance
        )

    return check
