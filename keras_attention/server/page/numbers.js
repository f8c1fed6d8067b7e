// Numbers as the page writes them.

/** Two decimals, and a true minus. What is not finite has its sign. */
export function decimal(value) {
  const number = Number(value); // The server writes "-Infinity" as a text.
  if (!Number.isFinite(number)) {
    return Number.isNaN(number) ? "not a number" : number > 0 ? "∞" : "−∞";
  }
  return number.toFixed(2).replace("-", "−");
}

/** A share of 1 in percent. */
export function percent(share) {
  return `${(100 * share).toFixed(0)} %`;
}
