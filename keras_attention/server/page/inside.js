// What a model did inside: maps, the choices of each step, and the beam.

import { drawArcs } from "./arcs.js";
import { readingOf } from "./attention.js";
import { showBeam } from "./beam.js";
import { shade, showChoices } from "./choices.js";
import { fill } from "./elements.js";
import { drawHeatMap } from "./heat_map.js";
import { inspect, LACKING } from "./inspection.js";
import { latest } from "./latest.js";
import { hideProblem, showProblem } from "./problem.js";
import { firstMap, listMaps, showSmallMaps } from "./small_maps.js";
import { answerOf } from "./spelling.js";
import { quoted, units } from "./tokens.js";
import { write } from "./writing.js";

const END = "[END]";
const NOWHERE = "This model has no attention: it looks nowhere.";

/**
 * Brings to life what a desk shows of the inside: `#looked`, `#choices`, and
 * `#beam` where there is one.
 *
 * @param show a function of a result of `write` and of the reading that is
 *     open, or null if none has the text's tokens as rows. It shows the text.
 *     It gives the buttons of its tokens, and the units that they show.
 * @param behind a function of an inspection: how `write` goes on behind a
 *     token that somebody chooses
 * @returns `isOffered`, whether the model has the signature, `stop()` for when
 *     the text has changed, and `start(run)`, which begins anew: `run` is a
 *     function of `ask`, see `write`, and gives such a result
 */
export function lookInside(desk, model, typed, again, show, behind) {
  const find = (id) => desk.querySelector(`#${id}`);
  const choices = find("choices");
  fill(choices, "step");
  const problem = choices.querySelector(".problem");
  const isOffered = model.has("inspect");
  const state = { view: "map", step: null, maps: [] };
  desk.querySelector(".lacking").textContent = LACKING;
  desk.querySelector(".lacking").hidden = isOffered;

  const begin = latest(
    0,
    (signal, run) => {
      const ask = (answer) =>
        inspect(model, { text: typed.text, answer }, signal);
      return run?.(ask);
    },
    (result) => result && render(result),
    (error) => {
      busy(false);
      choices.hidden = false;
      showProblem(problem, error, again);
    },
  );
  function busy(isBusy) {
    for (const part of desk.querySelectorAll("#maps, #opened, #beam")) {
      part.ariaBusy = `${isBusy}`;
    }
  }
  function start(run) {
    hideProblem(problem);
    busy(true);
    begin(run);
  }
  function reset() {
    state.step = null;
    choices.querySelector(".went").hidden = true;
    choices.hidden = true;
  }

  function render(result) {
    state.result = result;
    busy(false);
    find("shades").hidden = false;
    const { seen } = result;
    state.maps = listMaps(seen.groups);
    const chosen = state.maps.find(({ name }) => name === state.name)
      ?? firstMap(state.maps);
    find("looked").hidden = false;
    find("nowhere").textContent = chosen ? "" : NOWHERE;
    find("opened").hidden = !chosen;
    if (chosen) {
      find("opened").querySelector(".views").hidden = false;
      showSmallMaps(find("maps"), state.maps, chosen, open);
    } else {
      find("maps").replaceChildren();
    }
    open(chosen);
    if (find("beam")) {
      find("beam").hidden = !seen.tree.length;
      if (seen.tree.length) {
        showBeam(find("beam"), seen.tree);
      }
    }
  }

  /** Opens a map, and shows the text by it if its rows are the text's. */
  function open(map) {
    const { result } = state;
    const aligned = map?.group.isAlignment ? map : firstMap(state.maps);
    const reading = aligned?.group.isAlignment ? readingBy(aligned) : null;
    const { buttons, rows } = show(result, reading);
    state.last = rows.at(-1)?.places.at(-1) ?? result.seen.numGiven;
    shade(buttons, rows, result.seen, openStep);
    if (state.step !== null) {
      openStep(state.step);
    }
    if (map) {
      state.name = map.name;
      const title = find("opened").querySelector("h3");
      title.textContent = map.name;
      title.hidden = false;
      drawOpened(readingBy(map));
    }
  }

  function drawOpened(reading) {
    const parent = find("opened").querySelector(".map");
    for (const button of find("opened").querySelectorAll(".views button")) {
      button.setAttribute("aria-pressed", button.value === state.view);
    }
    (state.view === "lines" ? drawArcs : drawHeatMap)(parent, reading);
  }

  function openStep(place) {
    const { result: { seen }, last } = state;
    const step = Math.min(Math.max(place, seen.numGiven), last);
    state.step = step;
    showChoices(choices, seen, step, (token) => force(step, token));
    const [before, after] = choices.querySelectorAll(".steps button");
    before.disabled = step === seen.numGiven;
    after.disabled = step === last;
    before.onclick = () => openStep(step - 1);
    after.onclick = () => openStep(step + 1);
  }

  /** A token in place of the one that a step wrote, and what follows it. */
  function force(step, token) {
    const { seen } = state.result;
    const before = answerOf(seen, step);
    const given = token === END ? before : [...before, token];
    const went = choices.querySelector(".went");
    went.hidden = false;
    went.querySelector("span").textContent =
      `You chose ${quoted(units([token])[0].text)}. ` +
      "From there the model went on.";
    start((ask) => write({
      ask,
      given,
      // A guess: it may still be right behind another token.
      guess: token === END ? [] : rest(seen, step + 1),
      ...behind(seen),
      ...(token === END ? { choose: () => ({ token: END }) } : {}),
    }));
  }

  for (const button of desk.querySelectorAll(".views button")) {
    button.addEventListener("click", () => {
      state.view = button.value;
      open(state.maps.find(({ name }) => name === state.name));
    });
  }
  choices.querySelector(".went button").addEventListener("click", again);
  return {
    isOffered,
    start(run) {
      reset();
      start(run);
    },
    stop() {
      if (!isOffered) {
        return;
      }
      reset();
      begin(null);
      busy(true);
      find("shades").hidden = true;
    },
  };
}

/** The tokens from a step to the one before END. */
function rest({ tokens }, step) {
  return tokens.slice(step).filter((token) => token !== END);
}

function readingBy({ group, weights }) {
  return readingOf(group.rows, group.columns, weights);
}
