// Numbers as the page writes them.

/** Two decimals, and a true minus. What is not finite has its sign. */
export function decimal(value) {
  return written(value, 2);
}

/** A share of 1 in percent. */
export function percent(share) {
  return `${written(100 * share, 0)} %`;
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
