// An error on the page: what the server said, what to do, and once more.

import { html } from "./elements.js";

/** Shows an error in `node`, with a button that calls `again`. */
export function showProblem(node, error, again) {
  const parts = [html("strong", {}, error.message), ` ${error.advice ?? ""} `];
  if (again) {
    const button = html("button", { type: "button" }, "Try again");
    button.addEventListener("click", again);
    parts.push(button);
  }
  node.replaceChildren(...parts);
  node.hidden = false;
}

export function hideProblem(node) {
  node.hidden = true;
  node.replaceChildren();
}
