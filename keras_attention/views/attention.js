// Where each token looked: two lines of tokens. One lights up in the other.

import { html } from "./elements.js";
import { greatestOf, percent } from "./numbers.js";
import { alongLine, rove } from "./roving.js";
import { quoted, units, unitWeights } from "./tokens.js";

const LEAST = 0.01; // What counts as a look.
const HINT = "Point at a word, or reach it by Tab and the arrow keys.";

/** A matrix between tokens, by the units that a reader sees. */
export function readingOf(rowTokens, columnTokens, weights) {
  const rows = units(rowTokens);
  const columns = units(columnTokens);
  return { rows, columns, weights: unitWeights(weights, rows, columns) };
}

/** Nodes for `showReading`. */
export function readingNodes() {
  return [
    html("p", { class: "note" }, "Read"),
    html("p", { class: "columns", dir: "auto" }),
    html("p", { class: "note" }, "Looking at it"),
    html("div", {
      class: "rows", role: "group", dir: "auto",
      "aria-label": "Tokens. Arrow keys move.",
    }),
    html("p", { class: "says" }),
  ];
}

/**
 * Shows a reading. To point at a unit of the rows, or to move to it by
 * keyboard, lights up the columns that it looked at.
 *
 * @param parent holds nodes of the classes columns, rows and says
 * @param isWritten whether the rows are a text, which has no marks
 * @param mark a function of the row that somebody points at, or null
 * @returns the buttons of the rows
 */
export function showReading(
  parent, reading, isWritten = false, mark = () => {},
) {
  const part = (name) => parent.querySelector(`.${name}`);
  const columns = reading.columns.map((unit) => html("span", looks(unit)));
  setLine(part("columns"), columns, reading.columns);

  const greatest = greatestOf(reading.weights);
  const light = (row) => {
    const weights = row === null ? [] : reading.weights[row];
    const most = Math.max(LEAST, ...weights);
    columns.forEach((node, column) => {
      const share = (weights[column] ?? 0) / greatest;
      node.style.setProperty("--weight", share);
      node.classList.toggle("most", weights[column] === most);
    });
    mark(row);
    part("says").textContent = row === null ? HINT : sentence(reading, row);
  };
  const buttons = reading.rows.map((unit, row) =>
    html("button", {
      type: "button",
      "aria-label": sentence(reading, row),
      ...looks(unit),
    }),
  );
  const isShown = (unit) => !isWritten || !unit.isMark;
  const shown = [...reading.rows.keys()].filter((row) =>
    isShown(reading.rows[row]),
  );
  const line = shown.map((row) => buttons[row]);
  const focused = [...part("rows").querySelectorAll("button")].indexOf(
    document.activeElement,
  );
  setLine(part("rows"), line, reading.rows.filter(isShown));
  listen(line, shown, light);
  light(null);
  // Who reads by keyboard is not thrown out of the line.
  if (focused >= 0) {
    (line[focused] ?? line.at(-1))?.focus();
  }
  return buttons;
}

/** Takes a reading off the page. */
export function clearReading(parent) {
  for (const name of ["columns", "rows", "says", "map"]) {
    parent.querySelector(`.${name}`).replaceChildren();
  }
}

function looks(unit) {
  return { class: unit.isMark ? "unit mark" : "unit" };
}

/**
 * Shows a text's tokens as buttons, which look nowhere.
 *
 * @returns the buttons
 */
export function showLine(parent, lineUnits) {
  const buttons = lineUnits.map((unit) =>
    html("button", { type: "button", ...looks(unit) }));
  const focused = [...parent.querySelectorAll("button")].indexOf(
    document.activeElement);
  setLine(parent, buttons, lineUnits);
  rove(buttons, alongLine(buttons));
  if (focused >= 0) {
    (buttons[focused] ?? buttons.at(-1))?.focus();
  }
  return buttons;
}

/** Words with a blank between them. A word's tokens stay together. */
export function setLine(parent, nodes, lineUnits) {
  parent.replaceChildren();
  let word;
  nodes.forEach((node, place) => {
    const unit = lineUnits[place];
    node.textContent = unit.text;
    if (!word || unit.startsWord) {
      word = html("span", { class: "word" });
      parent.append(place ? " " : "", word);
    }
    word.append(node);
  });
}

/** Such as: “zwanzig” looked at “twenty” 98 %, “one” 2 %. */
export function sentence({ rows, columns, weights }, row) {
  const most = weights[row]
    .map((weight, column) => ({ weight, text: columns[column].text }))
    .sort((one, other) => other.weight - one.weight)
    .filter(({ weight }, place) => place < 3 && weight >= LEAST)
    .map(({ weight, text }) => `${quoted(text)} ${percent(weight)}`);
  const where = most.join(", ") || "no token with 1 % or more";
  return `${quoted(rows[row].text)} looked at ${where}`;
}

/** To point at a button, or to reach it, lights up what it looked at. */
function listen(buttons, rows, light) {
  const focused = () => {
    const place = buttons.indexOf(document.activeElement);
    return place < 0 ? null : rows[place];
  };
  buttons.forEach((button, place) => {
    button.addEventListener("pointerenter", () => light(rows[place]));
    button.addEventListener("pointerleave", () => light(focused()));
    button.addEventListener("focus", () => light(rows[place]));
    button.addEventListener("blur", () => light(null));
    // Not every browser moves the focus to a button that is touched.
    button.addEventListener("click", () => button.focus());
  });
  rove(buttons, alongLine(buttons));
}
