// Every layer and head as a small map. One of them is open.

import { html } from "./elements.js";
import { SLICE } from "./lazy.js";
import { greatestOf } from "./numbers.js";
import { rove } from "./roving.js";

const DARK = matchMedia("(prefers-color-scheme: dark)");
const LEGEND =
  "A small map is a layer and a head. Its largest weight has the full blue. " +
  "The scale is linear. Choose a map to open it.";
let repaint = () => {};
let unpainted = [];
DARK.addEventListener("change", () => repaint());

/** All maps of the groups in one list, each with a name that stays. */
export function listMaps(groups) {
  return groups.flatMap((group) =>
    group.lines.flatMap((line, row) =>
      line.maps.map((map, column) => ({
        ...map,
        group,
        row,
        column,
        name: [group.name, line.name, map.name].filter(Boolean).join(", "),
      })),
    ),
  );
}

/** The map that opens by itself: the last layer's mean, of an alignment. */
export function firstMap(maps) {
  const aligned = maps.filter(({ group }) => group.isAlignment);
  const layers = (aligned.length ? aligned : maps).filter(
    ({ name }) => !name.includes("rollout"),
  );
  const last = layers.filter(({ group }) => group === layers.at(-1).group);
  return last.at(-1);
}

/**
 * Shows the small maps.
 *
 * @param maps what `listMaps` gave
 * @param chosen the one that is open
 * @param open a function of the map that somebody chooses
 */
export function showSmallMaps(parent, maps, chosen, open) {
  const focused = parent.contains(document.activeElement);
  const buttons = maps.map((map) => {
    const button = html(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": map.name,
        "aria-pressed": map === chosen,
        title: map.name,
      },
      html("canvas", { "aria-hidden": true }),
    );
    button.addEventListener("click", () => {
      buttons.forEach((other) =>
        other.setAttribute("aria-pressed", other === button),
      );
      open(map);
    });
    return button;
  });
  const groups = [...new Set(maps.map(({ group }) => group))];
  parent.replaceChildren(
    html("p", { class: "note" }, LEGEND),
    ...groups.map((group) => showGroup(group, maps, buttons)),
  );
  const at = (row, column, group) =>
    maps.findIndex((map) =>
      map.group === group && map.row === row && map.column === column);
  rove(buttons, (key, place) => {
    const { row, column, group } = maps[place];
    return {
      ArrowLeft: place - 1,
      ArrowRight: place + 1,
      ArrowUp: at(row - 1, column, group),
      ArrowDown: at(row + 1, column, group),
      Home: 0,
      End: buttons.length - 1,
    }[key];
  }, maps.indexOf(chosen));
  // Large maps and rollouts take long: the page answers between two slices.
  function paintOn(own) {
    const end = performance.now() + SLICE;
    while (own.length && performance.now() < end) {
      const next = own.shift();
      const weights = maps[next].weights(end - performance.now());
      if (weights) {
        paint(buttons[next].firstChild, weights);
      } else {
        own.push(next);
      }
    }
    if (own.length) {
      setTimeout(() => {
        if (own === unpainted && parent.isConnected) {
          paintOn(own);
        }
      });
    }
  }
  repaint = () => {
    unpainted = [...maps.keys()];
    paintOn(unpainted);
  };
  repaint();
  if (focused) {
    buttons[maps.indexOf(chosen)].focus();
  }
}

function showGroup(group, maps, buttons) {
  const [rows, columns] = group.axes;
  const node = html("div", { class: "group" },
    html("h3", {}, `${group.name} `,
      html("span", { class: "note" }, `rows: ${rows}, columns: ${columns}`)));
  group.lines.forEach((line, row) => {
    const own = buttons.filter((_, place) =>
      maps[place].group === group && maps[place].row === row);
    node.append(html("div", { class: "layer" },
      html("span", { class: "note" }, line.name), ...own));
  });
  if (group.note) {
    node.append(html("p", { class: "note" }, group.note));
  }
  return node;
}

/** A pixel a weight. The greatest has the full colour. */
function paint(canvas, weights) {
  canvas.width = weights[0]?.length ?? 0;
  canvas.height = weights.length;
  if (!canvas.width || !canvas.height) {
    return;
  }
  const context = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  context.fillStyle = style.getPropertyValue("--accent");
  // Such as "#0072b2", whatever the style sheet has.
  const color = context.fillStyle.match(/\w\w/g)
    .map((digits) => parseInt(digits, 16));
  const greatest = greatestOf(weights);
  const pixels = context.createImageData(canvas.width, canvas.height);
  weights.flat().forEach((weight, place) => {
    pixels.data.set([...color, 255 * (weight / greatest)], 4 * place);
  });
  context.putImageData(pixels, 0, 0);
}
