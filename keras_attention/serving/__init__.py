"""From text to text: models that answer, SavedModels and their cards.

- `translator.Translator` and `continuer.Continuer` answer with a Keras model;
  `savedmodel.load` gives what they exported.
- Both offer the same: `text_to_text.TextToText` and
  `text_continuation.TextContinuation`.
"""
