"""The contract of models that continue a text: no source, step by step."""

import typing

import keras
from keras import ops

from keras_attention.models import paper_model


class LanguageModel(paper_model.PaperModel):
    """A model of `p(x_t | x_<t)`: abstract; each paper's model is final.

    Training and scores call the model on whole texts. A search uses two
    methods:

    - `initial_state(batch_size, max_length)` -> state: what the model
      remembers of the text; every leaf is [B, ...];
    - `step(token_ids, state)` -> `(logits, state)`: one token [B] in;
      logits float32 [B, V] of the next one.

    `decoding.without_source(model.step)` is the step of every search.

    A model whose state has one size, however long the text, also has
    `advance(token_ids, state)` -> `(logits, state)`: many tokens at once. So a
    stream without an end can be read part by part, see
    `training.objectives.CarriedObjective`.

    `call` and `step` share their layers: fed with the same tokens they give
    the same logits.

    Call arguments:
        token_ids: int [B, T]: START and the tokens of a text; padding comes
            last and changes no logits before it.
        training: whether dropout acts.

    Returns:
        logits float32 [B, T, V]: position t is about the token after
        `token_ids[:, t]`. Under mixed precision the last product runs in
        half precision, so that close logits may tie.

    Raises:
        ValueError: If the input is not an integer tensor of rank 2.
    """

    def __call__(self, token_ids, *args, **kwargs) -> typing.Any:
        shape = getattr(token_ids, "shape", None)
        if (
            shape is None
            or len(shape) != 2
            or "int" not in keras.backend.standardize_dtype(token_ids.dtype)
        ):
            what = type(token_ids).__name__
            if shape is not None:
                what = f"{token_ids.dtype} of shape {tuple(shape)}"
            raise ValueError(
                "A language model takes one integer tensor of shape (batch, "
                "length): START and the tokens before each label. Received: "
                f"{what}"
            )
        return super().__call__(token_ids, *args, **kwargs)

    def initial_state(self, batch_size, max_length):
        """The state before the first step, with room for `max_length` steps.

        A model with a cache has no place for further ones, and does not notice
        them: a search must not be longer.
        """
        raise NotImplementedError

    def step(self, token_ids, state):
        """One token: [B] -> (logits [B, V], state)."""
        raise NotImplementedError

    def advance(self, token_ids, state, training=None):
        """The next tokens: [B, T] -> (logits [B, T, V], state after them).

        The models of `catalog.CARRIED` have it. Their `call` is `advance` from
        the initial state.
        """
        raise NotImplementedError

    def read_vocabulary(self, pieces):
        """Tells the model how its tokens are spelt, in the order of their ids.

        Most models need not know, and do nothing.
        """

    def export(
        self,
        filepath,
        format="tf_saved_model",
        verbose=None,
        input_signature=None,
        **options,
    ):
        """Keras's export of `call`: ids in, logits out, in any shape.

        Args:
            filepath, format, verbose, options: as Keras takes them.
            input_signature: by default ids of any batch size and length.
        """
        if input_signature is None:
            input_signature = [
                keras.KerasTensor((None, None), "int32", name="token_ids")
            ]
        super().export(filepath, format, verbose, input_signature, **options)

    def build(self, input_shape=None):
        """Creates all weights by one call on a tiny batch."""
        # Search, export and summary need weights before any real call. What
        # was loaded has them.
        if not self.built:
            self.call(ops.ones((1, 2), dtype="int32"))
            self.built = True
