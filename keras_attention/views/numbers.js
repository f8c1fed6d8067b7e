// Numbers as the page writes them.

/** Two decimals, and a true minus. What is not finite has its sign. */
export function decimal(value) {
  return written(value, 2);
}

/** A share of 1 in percent. */
export function percent(share) {
  return `${written(100 * share, 0)} %`;
}

/** The same with two digits that say something, such as "0.031 %". */
export function finePercent(share) {
  const value = 100 * share;
  return value >= 9.95 || value < 1e-4
    ? percent(share)
    : `${Number(value.toPrecision(2))} %`;
}

/** The greatest weight of a map, and more than 0: other ones are shares. */
export function greatestOf(weights) {
  // Math.max takes some 100,000 numbers, and a map may have more.
  return weights.flat().reduce((one, other) => Math.max(one, other), 1e-9);
}

function written(value, decimals) {
  // The server writes "NaN" and "-Infinity" as texts.
  const number = Number(value);
  if (Number.isNaN(number)) {
    return "not a number";
  }
  const text = Number.isFinite(number)
    ? number.toFixed(decimals)
    : `${number}`;
  return text.replace("-", "−").replace("Infinity", "∞");
}
