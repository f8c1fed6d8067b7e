// An error on the page: what the server said, what to do, and another try.

import { html } from "./elements.js";

/** Shows an error in `node`, with a button that calls `again`. */
export function showProblem(node, error, again) {
  const words = error.message.replace(/([^.])$/, "$1.");
  const parts = [html("strong", {}, words), ` ${error.advice ?? ""} `];
  if (again && !error.isFinal) {
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
