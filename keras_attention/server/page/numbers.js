// Numbers as the page writes them.

/** Two decimals, and a true minus. What is not finite has its sign. */
export function decimal(value) {
  // The server writes "-Infinity" as a text.
  const number = Number(value);
  if (Number.isNaN(number)) {
    return "not a number";
  }
  const text = Number.isFinite(number) ? number.toFixed(2) : `${number}`;
  return text.replace("-", "−").replace("Infinity", "∞");
}

/** A share of 1 in percent. */
export function percent(share) {
  return `${(100 * share).toFixed(0)} %`;
}
