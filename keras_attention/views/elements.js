// Nodes of the page. Texts go in as text nodes, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element of HTML with attributes and children (nodes or texts). */
export function html(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same of SVG. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Gives a `<select>` its options: pairs of a value and a text. */
export function setOptions(select, options, chosen) {
  select.replaceChildren(
    ...options.map(([value, text]) => html("option", { value }, text)),
  );
  if (options.some(([value]) => value === chosen)) {
    select.value = chosen;
  }
}

/** A frame that the keyboard, too, can scroll. */
export function scrolled(label, node) {
  const attributes = { class: "scroll", tabindex: 0, role: "group" };
  return html("div", { ...attributes, "aria-label": label }, node);
}
