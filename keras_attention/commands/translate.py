"""`keras-attention translate`: what `predict` is called for translators."""

from keras_attention.commands import arguments, predict

app = arguments.make_app("translate", "Translate texts, or lines.").meta


@app.default
def translate(
    model: arguments.Model,
    /,
    *texts: predict.Texts,
    input: predict.Input = (),
    ensemble: predict.Ensemble = (),
    options: predict.Choice = predict.DEFAULTS,
) -> None:
    """Lines in, lines out, in the same order."""
    asked = predict.read(app, model, texts, input, options, ensemble)
    if asked:
        predict.write(asked, asked.ask(asked.rows))
