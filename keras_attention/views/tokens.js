// Tokens as people read them: "▁Mon", "day", "[END]" -> "Mon", "day", "END".

const BLANK = "▁"; // As SentencePiece writes it.
const BYTE = /^<0x([0-9A-F]{2})>$/;
const CONTINUES = /^<0x[89AB]/; // A byte of UTF-8, but the first.
export const END = "[END]";
const MARK = /^\[(PAD|UNK|START|END)\]$/;

/**
 * What a reader sees of tokens. Bytes of one character are one unit, and a
 * lone blank is one with the token after it.
 *
 * @returns for each unit its text, the places of its tokens, whether it
 *     begins a word, and whether it is a mark such as END.
 */
export function units(tokens) {
  const found = [];
  for (const [place, token] of tokens.entries()) {
    const byte = BYTE.exec(token);
    const mark = MARK.exec(token);
    const last = found.at(-1);
    const hasBytes = last?.bytes.length > 0;
    const joins = hasBytes
      ? CONTINUES.test(token)
      : last?.raw === BLANK && !mark;
    const unit = joins
      ? last
      : { raw: "", bytes: [], places: [], isMark: mark !== null };
    if (!joins) {
      found.push(unit);
    }
    unit.places.push(place);
    if (byte) {
      unit.bytes.push(parseInt(byte[1], 16));
    } else {
      unit.raw += mark ? mark[1] : token;
    }
  }
  // A vocabulary without blanks has words as its tokens.
  const hasBlanks = tokens.some((token) => token.includes(BLANK));
  return found.map(({ raw, bytes, places, isMark }) => ({
    text: raw.replace(BLANK, "").replaceAll(BLANK, " ") + decoded(bytes),
    places,
    startsWord: isMark || !hasBlanks || raw.startsWith(BLANK),
    isMark,
  }));
}

/** The units of the tokens from a place on. They know their own places. */
export function unitsFrom(start, tokens) {
  return units(tokens.slice(start)).map((unit) => ({
    ...unit,
    places: unit.places.map((place) => start + place),
  }));
}

/** The text that tokens write. It begins with a space where a word begins. */
export function textOf(tokens) {
  const spelt = tokens.join("").replaceAll(BLANK, " ");
  return spelt.replace(/(<0x[0-9A-F]{2}>)+/g, (bytes) =>
    decoded(bytes.match(/[0-9A-F]{2}/g).map((byte) => parseInt(byte, 16))));
}

/** Whether a text can have a token: no mark, and no part of a character. */
export function isWritable(token) {
  return !isMark(token) && !BYTE.test(token);
}

/** A step's choices that a text can have, or that end it. */
export function usable(choices) {
  return choices.filter(({ token }) => token === END || isWritable(token));
}

/** Whether a token is a mark, such as END. */
export function isMark(token) {
  return MARK.test(token);
}

/** Whether a token is a lone blank, which no text has at its end. */
export function isBlank(token) {
  return token === BLANK;
}

/** A text in quotes. Right-to-left texts do not turn what is around them. */
export function quoted(text) {
  return `\u2068“${text}”\u2069`;
}

function decoded(bytes) {
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/**
 * Weights between units from those between tokens. The weights of a unit's
 * columns are added. Those of its rows are averaged.
 */
export function unitWeights(weights, rows, columns) {
  return rows.map((row) =>
    columns.map((column) => {
      let sum = 0;
      for (const i of row.places) {
        for (const j of column.places) {
          sum += Number(weights[i][j]);
        }
      }
      return sum / row.places.length;
    }),
  );
}
