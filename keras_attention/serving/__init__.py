"""From text to text: models that answer, SavedModels and their cards.

- `translator.Translator`, `continuer.Continuer` and `labeller.Labeller` answer
  with a Keras model; `savedmodel.load` gives what they exported.
- Live and loaded models offer the same: `text_to_text.TextToText`,
  `text_continuation.TextContinuation` and `text_labelling.TextLabelling`.
"""
