"""From text to text: translators, SavedModels and their cards."""
