// Any other SavedModel: a field for each input of a signature, and its maps.

import { html, setOptions } from "./elements.js";
import { firstRow, groupsOf } from "./inspection.js";
import { latest } from "./latest.js";
import { viewMaps } from "./map_viewer.js";
import { hideProblem, showProblem } from "./problem.js";

const MOST_ZEROS = 1000; // A picture's would fill the page.

export function form(desk, model) {
  const find = (id) => desk.querySelector(`#${id}`);
  const problem = desk.querySelector(".problem");
  const names = Object.keys(model.signatures).filter(
    (name) => !name.startsWith("__"),
  );
  const showMaps = viewMaps(find("looked"));
  setOptions(find("signature"), names.map((name) => [name, name]),
    "serving_default");

  function showInputs() {
    const { inputs } = model.signatures[find("signature").value];
    const fields = Object.entries(inputs).sort().map(([name, info]) =>
      html("label", {}, `${name}, ${described(info)}`,
        html("textarea", { name, rows: 2, dir: "auto", spellcheck: "false" },
          isText(info) ? "" : example(info))),
    );
    find("inputs").replaceChildren(...fields);
    hideProblem(problem);
    find("answer").hidden = find("looked").hidden = true;
  }

  function inputsOf(signature) {
    const inputs = {};
    for (const field of find("inputs").querySelectorAll("textarea")) {
      const info = model.signatures[signature].inputs[field.name];
      inputs[field.name] = valueOf(field, info);
    }
    return inputs;
  }

  const ask = latest(
    0,
    (signal, signature) =>
      model.call(signature, inputsOf(signature), signal),
    (outputs, signature) => {
      if (signature === find("signature").value) {
        showOutputs(find, outputs);
        showFirst(signature, outputs);
      }
    },
    (error) => {
      (error.field?.parentElement ?? find("inputs")).after(problem);
      showProblem(problem, error);
    },
  );

  /** The maps of the first row, if the signature gives any. */
  function showFirst(signature, outputs) {
    const declared = model.kind?.signatures[signature]?.outputs ?? {};
    const groups = groupsOf(firstRow(outputs, declared), declared);
    find("looked").hidden = !groups.length;
    find("which").hidden = Object.values(outputs)[0]?.length === 1;
    showMaps(groups);
  }

  find("signature").addEventListener("change", showInputs);
  find("plain").addEventListener("submit", (event) => {
    event.preventDefault();
    hideProblem(problem);
    find("answer").hidden = find("looked").hidden = true;
    ask(find("signature").value);
  });
  showInputs();
}

function axes({ tensor_shape: { dim, unknown_rank } }) {
  return unknown_rank ? null : dim.map(({ size }) => Number(size));
}

/** Such as "float32 [?, 3]", and how to type it. */
function described(info) {
  const kind = info.dtype.replace("DT_", "").toLowerCase();
  const shape = axes(info)?.map((size) => (size < 0 ? "?" : size));
  const how = isText(info) ? "one text a line" : "as JSON";
  return `${kind} [${shape?.join(", ") ?? "…"}], ${how}`;
}

/** Whether an input is a list of texts, which needs no JSON. */
function isText(info) {
  return info.dtype === "DT_STRING" && axes(info)?.length === 1;
}

/** Zeros of an input's shape. An axis of any length is 1 long. */
function example(info) {
  const sizes = (axes(info) ?? []).map(Math.abs);
  if (sizes.reduce((product, size) => product * size, 1) > MOST_ZEROS) {
    return "";
  }
  const zero = info.dtype === "DT_STRING" ? "" : 0;
  const zeros = sizes.reduceRight(
    (inner, size) => Array(size).fill(inner),
    info.dtype === "DT_BOOL" ? false : zero,
  );
  return JSON.stringify(zeros);
}

function valueOf(field, info) {
  if (isText(info)) {
    return field.value.split("\n");
  }
  try {
    return JSON.parse(field.value);
  } catch (error) {
    const words = `Expected JSON for ${field.name}. ${error.message}.`;
    throw Object.assign(new Error(words), { field });
  }
}

function showOutputs(find, outputs) {
  const parts = Object.entries(outputs).flatMap(([name, value]) => [
    html("dt", {}, name),
    html("dd", {}, html("pre", {
      dir: "auto", tabindex: 0, role: "group", "aria-label": name,
    }, JSON.stringify(value))),
  ]);
  find("outputs").replaceChildren(...parts);
  find("answer").hidden = false;
}
