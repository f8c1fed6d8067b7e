// What a model did inside: maps, the choices of each step, and the beam.

import { showBeam } from "./beam.js";
import { shade, viewChoices } from "./choices.js";
import { html } from "./elements.js";
import { inspect, LACKING } from "./inspection.js";
import { latest } from "./latest.js";
import { viewMaps } from "./map_viewer.js";
import { hideProblem, showProblem } from "./problem.js";
import { answerOf } from "./spelling.js";
import { END, quoted, units } from "./tokens.js";
import { write } from "./writing.js";

const MOST = 5; // Choices of a step.

/**
 * Brings to life what a desk shows of the inside: `#looked`, `#choices`, and
 * `#beam` where there is one.
 *
 * @param show a function of a result of `write`, of the reading that is open,
 *     or null if none has the text's tokens as rows, and of what marks one of
 *     its rows. It shows the text. It gives the buttons of its tokens, and the
 *     units that they show.
 * @param behind a function of an inspection: how `write` goes on behind a
 *     token that somebody chooses
 * @returns `isOffered`, whether the model has the signature, `stop()` for when
 *     the text has changed, and `start(run)`, which begins anew: `run` is a
 *     function of `ask`, see `write`, and gives such a result
 */
export function lookInside(desk, model, typed, again, show, behind) {
  const find = (id) => desk.querySelector(`#${id}`);
  const isOffered = model.has("inspect");
  desk.querySelector(".lacking").textContent = LACKING;
  desk.querySelector(".lacking").hidden = isOffered;
  const problem = html("p", { class: "problem", role: "status", hidden: "" });
  const went = html("p", { class: "went note", hidden: "" }, html("span"),
    html("button", { type: "button" }, "The model's own answer"));
  find("choices").append(problem, went);
  const choices = viewChoices(find("choices"), MOST, force);
  const showMaps = viewMaps(find("looked"), showText);
  let result;

  const begin = latest(
    0,
    (signal, run) => {
      const ask = (answer) =>
        inspect(model, { text: typed.text, answer }, signal);
      return run?.(ask);
    },
    (found) => found && render(found),
    (error) => {
      busy(false);
      find("choices").hidden = false;
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
    went.hidden = true;
    choices.close();
  }

  function render(found) {
    result = found;
    busy(false);
    find("shades").hidden = false;
    find("looked").hidden = false;
    showMaps(found.seen.groups);
    if (find("beam")) {
      find("beam").hidden = !found.seen.tree.length;
      if (found.seen.tree.length) {
        showBeam(find("beam"), found.seen.tree);
      }
    }
  }

  function showText(reading, mark) {
    const { seen } = result;
    const { buttons, rows } = show(result, reading, mark);
    shade(buttons, rows, seen, choices.open);
    choices.update(seen, rows.at(-1)?.places.at(-1) ?? seen.numGiven);
  }

  /** A token in place of the one that a step wrote, and what follows it. */
  function force(step, token) {
    const { seen } = result;
    const before = answerOf(seen, step);
    const given = token === END ? before : [...before, token];
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

  went.querySelector("button").addEventListener("click", again);
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
