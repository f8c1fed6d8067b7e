// Where a model looked: all its maps, small, and one of them opened.

import { drawArcs } from "./arcs.js";
import { readingNodes, readingOf, showReading } from "./attention.js";
import { html } from "./elements.js";
import { drawHeatMap, drawLegend } from "./heat_map.js";
import { SLICE } from "./lazy.js";
import { greatestOf } from "./numbers.js";
import { firstMap, listMaps, showSmallMaps } from "./small_maps.js";

const NOWHERE = "This model has no attention: it looks nowhere.";
const WORKS = "The page computes this map.";
const VIEWS = { map: "Map", lines: "Lines", text: "Text" };

/**
 * Puts the views of maps into `parent`, below what it holds.
 *
 * @param opened a function of a reading and of what marks one of its rows. It
 *     is called whenever a map is drawn. The reading is that of the map which
 *     is open, or of the first one, between a text and what is written. Without
 *     such a map it is null.
 * @returns a function of groups, see `groupOf`: it shows them
 */
export function viewMaps(parent, opened = () => {}) {
  const small = html("div", { id: "maps" });
  const nowhere = html("p", { class: "note", id: "nowhere" });
  const title = html("h3", { hidden: "" });
  const buttons = Object.entries(VIEWS).map(([value, text]) =>
    html("button", { type: "button", value }, text));
  const views = html("p", { class: "views", hidden: "" }, ...buttons);
  const picture = html("div", { class: "map" });
  const panel = html("div", { id: "opened" }, title, views, picture);
  parent.append(small, nowhere, panel);
  const state = { view: "map", name: null, maps: [], open: undefined };

  function show(groups) {
    state.maps = listMaps(groups);
    const chosen = state.maps.find(({ name }) => name === state.name)
      ?? firstMap(state.maps);
    nowhere.textContent = chosen ? "" : NOWHERE;
    panel.hidden = title.hidden = views.hidden = !chosen;
    if (chosen) {
      showSmallMaps(small, state.maps, chosen, open);
    } else {
      small.replaceChildren();
    }
    open(chosen);
  }

  function open(map) {
    state.open = map;
    const isKnown = !map || map.weights(SLICE) !== null;
    const mark = map && isKnown ? draw(map) : () => {};
    const aligned = isKnown && map?.group.isAlignment
      ? map : firstMap(state.maps);
    const reading = aligned?.group.isAlignment ? readingBy(aligned) : null;
    opened(reading, aligned === map ? mark : () => {});
    if (map) {
      state.name = title.textContent = map.name;
      for (const button of buttons) {
        button.setAttribute("aria-pressed", button.value === state.view);
      }
    }
    if (!isKnown) {
      picture.replaceChildren(
        html("p", { class: "note", role: "status" }, WORKS));
      compute(map);
    }
  }

  /** Computes a map that is to be opened. The page answers meanwhile. */
  function compute(map) {
    setTimeout(() => {
      if (state.open !== map || !picture.isConnected) {
        return;
      }
      if (map.weights(SLICE) === null) {
        compute(map);
      } else {
        open(map);
      }
    });
  }

  /** Draws a map, and gives what marks one of its rows. */
  function draw(map) {
    const reading = readingBy(map);
    if (state.view === "map") {
      return drawHeatMap(picture, reading).mark;
    }
    if (state.view === "lines") {
      drawArcs(picture, reading, map.group.isWritten);
    } else {
      drawText(picture, reading);
    }
    return () => {};
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      state.view = button.value;
      open(state.open);
    });
  }
  return show;
}

function readingBy({ group, weights }) {
  return readingOf(group.rows, group.columns, weights(Infinity));
}

/** A reading as text, which may be of any length. */
function drawText(parent, reading) {
  const legend = drawLegend(greatestOf(reading.weights));
  legend.classList.add("glows");
  parent.replaceChildren(...readingNodes(), legend);
  showReading(parent, reading);
}
