"""The Vision Transformer: a picture is read like a sentence, patch by patch."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import paper_model


@keras.saving.register_keras_serializable(package="keras_attention")
class VisionTransformer(paper_model.PaperModel):
    """A classifier of pictures (Dosovitskiy et al. 2021, section 3.1).

    ```
    z_0  = [x_class; x^1 E; ...; x^N E] + E_pos         equation 1
    z'_l = MSA(LN(z_{l-1})) + z_{l-1}                   equation 2
    z_l  = MLP(LN(z'_l)) + z'_l,  l = 1 ... L           equation 3
    y    = LN(z_L^0)                                    equation 4
    class logits = W y + b
    ```

    A picture is cut into patches, row by row. A patch is a word: its pixels
    form one vector, which is projected to the width of the stack. The stack is
    the language model's, without its mask. The label comes from the last
    layer's output at the class token.

    | paper | here |
    |---|---|
    | P, of a patch P x P | `patch_size` |
    | L, D, heads | `num_layers`, `hidden_dim`, `num_heads` |
    | MLP size | `intermediate_dim` |
    | x_class, E_pos | `class_token`, `position_embeddings` |

    By default GELU has its tanh form, and the epsilon of a normalisation is
    1e-6, as in the authors' code. Deviations: dropout does not act inside the
    MLP. There is no hidden layer before the class logits, which the paper has
    in pre-training.

    Args:
        num_classes: of the labels.
        image_shape: height, width and channels.
        patch_size: must divide height and width.
        num_layers: layers.
        hidden_dim: width.
        intermediate_dim: width of the feed-forward networks.
        num_heads: heads; must divide `hidden_dim`.
        dropout: rate.
        activation: of the feed-forward networks, by name.
        epsilon: what a normalisation adds to the variance.

    Call arguments:
        inputs: {"image": pictures}, or the pictures themselves: float [B,
            height, width, channels], or the same numbers as [B, N].
        training: whether dropout acts.

    Returns:
        logits float32 [B, num_classes]. `attend` also returns the weights of
        all layers, float32 [B, L, H, 1 + N, 1 + N] for N patches.

    Raises:
        ValueError: If there is no layer, or if patches do not fill a picture.

    Reference: https://arxiv.org/abs/2010.11929
    """

    sizes = {
        # 2 layers, 64 wide, for pictures of 8 x 8: handwritten digits.
        "mini": {
            "image_shape": (8, 8, 1),
            "patch_size": 2,
            "num_layers": 2,
            "hidden_dim": 64,
            "intermediate_dim": 128,
            "num_heads": 4,
        },
        # The paper's ViT-B/16 (Dosovitskiy et al. 2021, table 1).
        "base": {},
    }
    maps = {"encoder": ("places", "places")}

    def __init__(
        self,
        num_classes,
        image_shape=(224, 224, 3),
        patch_size=16,
        num_layers=12,
        hidden_dim=768,
        intermediate_dim=3072,
        num_heads=12,
        dropout=0.1,
        activation="tanh_gelu",
        epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        height, width, _ = image_shape
        if num_layers < 1 or height % patch_size or width % patch_size:
            raise ValueError(
                "`num_layers` must be at least 1, and `patch_size` must divide "
                "the picture's height and width. Received: num_layers="
                f"{num_layers}, image_shape={image_shape}, "
                f"patch_size={patch_size}"
            )
        self.config = {
            "num_classes": num_classes,
            "image_shape": list(image_shape),
            "patch_size": patch_size,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "intermediate_dim": intermediate_dim,
            "num_heads": num_heads,
            "dropout": dropout,
            "activation": activation,
            "epsilon": epsilon,
        }
        policy = {"dtype": self.dtype_policy}
        self.patch_embedding = keras.layers.Dense(
            hidden_dim, name="patch_embedding", **policy
        )
        self.class_token = self.add_weight(
            name="class_token", shape=(1, hidden_dim), initializer="zeros"
        )
        self.position_embeddings = self.add_weight(
            name="position_embeddings",
            shape=(1 + height * width // patch_size**2, hidden_dim),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        names = "num_heads intermediate_dim dropout activation epsilon".split()
        same = {name: self.config[name] for name in names}
        self.stack = [
            layers.SelfAttentionLayer(
                norm_first=True, name=f"layer_{index}", **same, **policy
            )
            for index in range(num_layers)
        ]
        self.norm = keras.layers.LayerNormalization(
            epsilon=epsilon, name="norm", **policy
        )
        self.head = keras.layers.Dense(num_classes, name="head", **policy)

    def patches(self, images):
        """The pixels of each patch, row by row: [B, N, P * P * channels]."""
        height, width, channels = self.config["image_shape"]
        size = self.config["patch_size"]
        rows, columns = height // size, width // size
        x = ops.reshape(images, (-1, rows, size, columns, size, channels))
        x = ops.transpose(x, (0, 1, 3, 2, 4, 5))
        return ops.reshape(x, (-1, rows * columns, size * size * channels))

    def read(self, images, training=None):
        """What the stack makes of pictures, and where its heads look.

        Place 0 is the class token, then come the patches, row by row.

        Returns:
            `(outputs, attention_weights)`: [B, 1 + N, D] after the last layer,
            and for each layer float32 [B, H, 1 + N, 1 + N].
        """
        x = self.patch_embedding(self.patches(images))  # [B, N, D]
        class_tokens = ops.zeros_like(x[:, :1]) + ops.cast(
            self.class_token, x.dtype
        )
        x = ops.concatenate([class_tokens, x], axis=1)  # [B, 1 + N, D]
        x = x + ops.cast(self.position_embeddings, x.dtype)
        x = self.dropout(x, training=training)
        attention_weights = []
        for layer in self.stack:
            x, layer_weights = layer(x, training=training)
            attention_weights.append(layer_weights)
        return x, attention_weights

    def attend(self, inputs, training=None):
        """Logits [B, C], and the weights of all layers and heads."""
        images = inputs["image"] if isinstance(inputs, dict) else inputs
        x, attention_weights = self.read(images, training)
        logits = ops.cast(self.head(self.norm(x[:, 0])), "float32")
        return logits, ops.stack(attention_weights, axis=1)

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`. Place 0 is the class token."""
        logits, attention_weights = self.attend(inputs, training)
        return logits, self.as_maps(attention_weights)

    def call(self, inputs, training=None):
        logits, _ = self.attend(inputs, training)
        return logits

    def build(self, input_shape=None):
        """Creates all weights by one call on a tiny batch."""
        if not self.built:
            self.call(ops.zeros((1, *self.config["image_shape"])))
            self.built = True

    def get_config(self):
        return {**super().get_config(), **self.config}
