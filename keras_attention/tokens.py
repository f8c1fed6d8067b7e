"""The four control tokens, as ids and as text: their one home."""

PAD, UNK, START, END = 0, 1, 2, 3
PAD_TEXT, UNK_TEXT, START_TEXT, END_TEXT = "[PAD]", "[UNK]", "[START]", "[END]"
CONTROL_TEXTS = (PAD_TEXT, UNK_TEXT, START_TEXT, END_TEXT)
