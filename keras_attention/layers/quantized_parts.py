"""Files of layers with parts that are quantized, such as to int8."""

import keras

# What can be made again without the data that calibrates it.
MODES = ("int8", "int4", "float8")


class QuantizedParts:
    """Stores which parts of a layer are quantized: stands before its base.

    `model.quantize("int8")` gives a part other weights. Keras stores that for
    layers of a functional model alone. A file of a layer that has the part as
    an attribute would not load: the part would be made with the weights of
    float32, and would not find them.
    """

    def _numbered_parts(self):
        # In the order in which the constructor and `build` make them.
        return enumerate(self._flatten_layers(include_self=False))

    def get_build_config(self):
        """Keras's, and which parts are quantized.

        Raises:
            ValueError: If a part's mode cannot be made again.
        """
        quantized = []
        for number, part in self._numbered_parts():
            mode = part.quantization_mode
            if mode is None:
                continue
            if mode not in MODES:
                raise ValueError(
                    f"A layer with parts in {mode} cannot be saved as it is: "
                    f"quantize to {', '.join(MODES)}, or export the model."
                )
            choices = getattr(part, "quantization_config", None)
            if choices is not None:
                choices = keras.saving.serialize_keras_object(choices)
            quantized.append({"part": number, "mode": mode, "config": choices})
        config = super().get_build_config()
        if not quantized:
            return config
        return {**(config or {}), "quantized": quantized}

    def build_from_config(self, config):
        """Makes all weights, also those of quantized parts."""
        config = dict(config)
        quantized = config.pop("quantized", [])
        super().build_from_config(config)
        parts = dict(self._numbered_parts())
        for one in quantized:
            choices = one["config"]
            if choices is not None:
                choices = keras.saving.deserialize_keras_object(choices)
            part = parts[one["part"]]
            # A layer that was given brings its own configuration: it may be
            # quantized by now.
            if part.quantization_mode is None:
                part.quantize(one["mode"], config=choices)
