"""From text to ids and back."""
