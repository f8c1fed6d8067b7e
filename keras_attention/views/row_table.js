// A row of a map as a table, where all its rows are too many.

import { html, scrolled, setOptions } from "./elements.js";
import { finePercent } from "./numbers.js";
import { quoted } from "./tokens.js";

const LONGEST_NAME = 24;

/**
 * A table of one row, and a field to choose the row.
 *
 * @param isOpen whether the table is seen at once
 * @returns `node`, and `mark(row)`, which chooses a row, or none for null
 */
export function rowTable({ rows, columns, weights }, isOpen) {
  const choice = html("select");
  setOptions(choice, rows.map(({ text }, row) =>
    [row, `${row + 1}: ${[...text].slice(0, LONGEST_NAME).join("")}`]));
  const caption = html("caption");
  const body = html("tbody");
  const table = html("table", {}, caption,
    html("thead", {}, html("tr", {},
      html("th", { scope: "col" }, "Column"),
      html("th", { scope: "col" }, "Weight"))),
    body);
  const pane = scrolled("Table", table);
  pane.classList.add("tall");
  const node = html("details", {},
    html("summary", {}, "A row as a table"),
    html("label", {}, "Row ", choice), pane);
  node.open = isOpen;

  function show() {
    if (!node.open) {
      return;
    }
    const row = Number(choice.value);
    caption.textContent = `Where ${quoted(rows[row].text)} looked.`;
    body.replaceChildren(...columns.map(({ text }, column) =>
      html("tr", {},
        html("th", { scope: "row" }, text),
        html("td", {}, finePercent(weights[row][column])))));
  }
  choice.addEventListener("change", show);
  node.addEventListener("toggle", show);
  show();
  return {
    node,
    mark(row) {
      if (row !== null && row !== Number(choice.value)) {
        choice.value = row;
        show();
      }
    },
  };
}
