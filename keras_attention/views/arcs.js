// The weights of one head as lines between two lists of tokens.

import { sentence } from "./attention.js";
import { html, svg } from "./elements.js";
import { drawLegend, isTooLarge } from "./heat_map.js";
import { decimal, greatestOf } from "./numbers.js";
import { player } from "./player.js";
import { alongColumn, rove } from "./roving.js";

const LINE_HEIGHT = 28; // Of a token, as in inside.css.
const FAINTEST = 0.01; // Of the greatest weight. Fainter lines are not seen.
const TOO_MANY_LINES = "The text is too long for lines: choose Map or Text.";
const CHOOSE = "Choose a token on the left for its lines alone.";

/**
 * Draws a reading's weights as lines: rows on the left, columns on the right.
 * Choose a row to see its lines alone.
 *
 * @param isWritten whether the rows are written one after the other. Then
 *     they can be written once more.
 */
export function drawArcs(parent, reading, isWritten = false) {
  const { rows, columns, weights } = reading;
  if (isTooLarge(reading)) {
    parent.replaceChildren(html("p", { class: "note" }, TOO_MANY_LINES));
    return;
  }
  const greatest = greatestOf(weights);
  const height = LINE_HEIGHT * Math.max(rows.length, columns.length);
  const picture = svg("svg", {
    viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none",
    "aria-hidden": true,
  });
  // As an attribute it would lose to the height of every svg in the CSS.
  picture.style.height = `${height}px`;
  const looked = columns.map(({ text }) => html("span", {}, text));
  const buttons = rows.map(({ text }) =>
    html("button", { type: "button", "aria-pressed": false, title: text },
      text));
  const arcs = html("div", { class: "arcs" },
    html("ol", { "aria-label": "Rows" },
      ...buttons.map((button) => html("li", {}, button))),
    picture,
    html("ol", { "aria-label": "Columns" },
      ...looked.map((node) => html("li", {}, node))));
  const says = html("p", { class: "says", "aria-live": "polite" });

  function draw() {
    const lines = weights.flatMap((row, i) =>
      row.flatMap((weight, j) =>
        (chosen !== null && i !== chosen) || weight < FAINTEST * greatest
          ? []
          : [svg("line", {
            x1: 0, y1: LINE_HEIGHT * (i + 0.5),
            x2: 100, y2: LINE_HEIGHT * (j + 0.5),
            "stroke-opacity": weight / greatest,
          })]));
    picture.replaceChildren(...lines);
    looked.forEach((node, j) => {
      const share = chosen === null ? 0 : weights[chosen][j] / greatest;
      node.style.setProperty("--weight", share);
      node.title = chosen === null ? columns[j].text
        : decimal(weights[chosen][j]);
    });
    buttons.forEach((button, i) =>
      button.setAttribute("aria-pressed", i === chosen));
    says.textContent = chosen === null ? CHOOSE : sentence(reading, chosen);
  }
  let chosen = null;
  function choose(row) {
    chosen = row;
    draw();
  }
  buttons.forEach((button, i) =>
    button.addEventListener("click", () => choose(chosen === i ? null : i)));
  rove(buttons, alongColumn(buttons));
  draw();
  parent.replaceChildren(
    ...(isWritten ? [player(buttons, choose)] : []),
    says, arcs, drawLegend(greatest));
}
