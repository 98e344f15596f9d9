// A grid of patches: how alike is one of them to all others, by what a method is told of its place?
// By the patch's number, by its row and column, or along a direction between the two.
//
//   controls -> state -> compute(state) -> draw(view)
//
// Everything up to the sentences is pure, so a test can hold it to NumPy's values. Patch t of a
// grid of height × width stands in row t / width (rounded down) and column t modulo width.

import {
  DEGREE, button, checkbox, clamp, draggable, drawing, fact, frame, html, math, newPrefix, number,
  pointAt, reading, select, set, slider, svg, voice, whole,
} from "./_kit.js";

export const HEIGHT = { min: 1, max: 10, step: 1 };
export const WIDTH = { min: 1, max: 12, step: 1 };
export const ANGLE = { min: 0, max: 180, step: 15 };
const METHODS = [
  ["number", "Number of the patch"],
  ["added", "Row and column, sines and cosines"],
  ["axial", "Axial rotation"],
  ["ridge", "Mixed rotation, one direction"],
  ["mixed", "Mixed rotation, two directions"],
];

export const INITIAL = Object.freeze({
  method: "axial",
  height: 5,
  width: 8,
  row: 2, // the chosen patch
  column: 3,
  angle: 135, // degrees, anticlockwise from "to the right": where the mixed pairs turn
  swapped: false, // the fault: the mesh takes the height for the width
});

// ---------------------------------------------------------------------------------------- compute

const ladder = (pairs, base) => Array.from({ length: pairs }, (_, i) => base ** (-i / pairs));

/** [radians a row, radians a column] of each of the eight pairs of a vector of width 16. */
export function frequencies({ method, width, angle }) {
  if (method === "number") return ladder(8, 10000).map((f) => [width * f, f]);
  const direction = angle * DEGREE;
  const along = (f, turn) => [-f * Math.sin(turn), f * Math.cos(turn)]; // rows count downwards
  if (method === "ridge") return ladder(8, 100).map((f) => along(f, direction));
  const half = ladder(4, method === "added" ? 10000 : 100);
  if (method === "mixed") {
    return [direction, direction + Math.PI / 2].flatMap((turn) => half.map((f) => along(f, turn)));
  }
  return [...half.map((f) => [f, 0]), ...half.map((f) => [0, f])];
}

/** The state with a chosen patch that lies inside the grid. */
export function fit(state) {
  return {
    ...state,
    row: clamp(state.row, { min: 0, max: state.height - 1 }),
    column: clamp(state.column, { min: 0, max: state.width - 1 }),
  };
}

// The row and column that a method is told of patch t. A number needs no mesh.
function placeOf(t, { method, height, width, swapped }) {
  if (swapped && method !== "number") return [t % height, Math.floor(t / height)];
  return [Math.floor(t / width), t % width];
}

function situationOf({ method, height, width, swapped }) {
  if (height * width === 1) return "one patch";
  if (height === 1 || width === 1) return "one line";
  if (method === "number") return "number";
  if (swapped) return height === width ? "swapped square" : "swapped rectangle";
  return "right";
}

/** Everything the picture shows. `likeness` goes from −1 to 1, one value for each patch. */
export function compute(given) {
  const state = fit(given);
  const { method, height, width, row, column } = state;
  const count = height * width;
  const chosen = row * width + column;
  const places = Array.from({ length: count }, (_, t) => placeOf(t, state));
  const pairs = frequencies(state);
  const [r, c] = places[chosen];
  const likeness = places.map(([s, d]) => {
    const sum = pairs.reduce((total, [down, across]) =>
      total + Math.cos((s - r) * down + (d - c) * across), 0);
    return sum / pairs.length;
  });
  const steps = (a, b) => method === "number"
    ? Math.abs(a - b)
    : Math.abs(places[a][0] - places[b][0]) + Math.abs(places[a][1] - places[b][1]);
  let [kept, neighbours] = [0, 0];
  for (let t = 0; t < count; t += 1) {
    const beside = t % width < width - 1 ? [t + 1] : [];
    const below = t + width < count ? [t + width] : [];
    for (const other of [...beside, ...below]) {
      neighbours += 1;
      kept += steps(t, other) === 1 ? 1 : 0;
    }
  }
  return {
    likeness,
    chosen,
    place: places[chosen],
    right: column + 1 < width ? likeness[chosen + 1] : null,
    below: row + 1 < height ? likeness[chosen + width] : null,
    kept: neighbours === 0 ? null : kept / neighbours, // of the neighbours in the picture
    situation: situationOf(state),
  };
}

// ------------------------------------------------------------------------------------------ words

const straight = (angle) => angle % 90 === 0;

function rightText({ method, angle }) {
  if (method === "ridge") {
    return straight(angle)
      ? "All pairs turn along one axis: the other axis is not seen at all."
      : "A ridge: along it nothing turns, so one diagonal is told from the other.";
  }
  if (method === "mixed" && !straight(angle)) {
    return "The cross is turned: half of the pairs point one way, half at a right angle to it.";
  }
  const cross = "A cross: a sum of one part for the rows and one for the columns.";
  return method === "mixed" ? `${cross} Straight on, mixed is axial.` : cross;
}

/** One or two sentences on what is to be seen, the special cases included. */
export function relationText(state, view) {
  const { method, height, width } = state;
  switch (view.situation) {
    case "one patch":
      return "A grid of one patch: there is nothing to compare it with.";
    case "one line":
      return `One ${height === 1 ? "row" : "column"} only: a line, as in a text` +
        `${state.swapped && method !== "number" ? ", which no swap can harm." : "."}`;
    case "number":
      return `One to the right is one number on, one below is ${width} numbers on.`;
    case "swapped square": {
      const harm = method === "added" || method === "axial"
        ? "The colours are the same."
        : "The pattern is mirrored.";
      return `Swapped on a square: the axes trade names, and all neighbours stay. ${harm}`;
    }
    case "swapped rectangle":
      return (
        `Swapped on ${height} × ${width}: patch ${view.chosen} is taken for row ` +
        `${view.place[0]}, column ${view.place[1]}, and neighbours are torn apart.`
      );
    default:
      return rightText(state);
  }
}

const nameOf = (method) => METHODS.find(([value]) => value === method)[1];

/** One sentence on what the reader's last movement did. */
export function changeText(before, after) {
  if (after.method !== before.method) return `Method: ${nameOf(after.method)}.`;
  if (after.height !== before.height || after.width !== before.width) {
    const size = `The grid is now ${after.height} × ${after.width}`;
    return `${size}, ${after.height === after.width ? "a square" : "no square"}.`;
  }
  if (after.swapped !== before.swapped) {
    if (after.method === "number") return "A number needs no mesh: there is nothing to swap.";
    return after.swapped ? "The mesh is swapped." : "The mesh is right again.";
  }
  if (after.angle !== before.angle) {
    const mixed = after.method === "ridge" || after.method === "mixed";
    const words = `Mixed pairs now turn along ${after.angle}°`;
    return mixed ? `${words}.` : `${words}; this method has none.`;
  }
  const t = after.row * after.width + after.column;
  return `Chosen: patch ${t}, in row ${after.row} and column ${after.column}.`;
}

// -------------------------------------------------------------------------------------- drawing

const BOX = { width: 400, height: 340 };

function layout({ height, width }) {
  const size = Math.min(48, BOX.width / width, BOX.height / height);
  return { size, x: (BOX.width - size * width) / 2, y: (BOX.height - size * height) / 2 };
}

function cellsOf(state, view) {
  const { size, x, y } = layout(state);
  return view.likeness.flatMap((value, t) => {
    const left = x + size * (t % state.width);
    const top = y + size * Math.floor(t / state.width);
    const negative = value < 0;
    const cell = svg("rect", {
      class: negative ? "cell series-2" : "cell series-1",
      style: `--share: ${Math.abs(value).toFixed(4)}`,
      x: (left + 0.5).toFixed(2),
      y: (top + 0.5).toFixed(2),
      width: (size - 1).toFixed(2),
      height: (size - 1).toFixed(2),
    });
    if (!negative) return [cell];
    const start = [left + size * 0.38, top + size / 2].map((v) => v.toFixed(2)).join(" ");
    const dash = `M ${start} h ${(size * 0.24).toFixed(2)}`; // for whoever sees no colour
    return [cell, svg("path", { class: "tick long", d: dash })];
  });
}

/** Brings the page's nodes into line with one state and its view. */
export function draw(parts, state, view) {
  const { size, x, y } = layout(state);
  parts.cells.replaceChildren(...cellsOf(state, view));
  const centre = [x + size * (state.column + 0.5), y + size * (state.row + 0.5)];
  set(parts.outline, {
    x: (centre[0] - size / 2 + 1).toFixed(2),
    y: (centre[1] - size / 2 + 1).toFixed(2),
    width: (size - 2).toFixed(2),
    height: (size - 2).toFixed(2),
  });
  const [cx, cy] = centre.map((value) => value.toFixed(2));
  set(parts.halo, { cx, cy, r: (size * 0.66).toFixed(2) });
  set(parts.hit, { cx, cy, r: (size / 2).toFixed(2) });
  set(parts.label, { x: cx, y: (centre[1] + 4.5).toFixed(2) });
  parts.label.textContent = String(view.chosen);
  set(parts.chosen, {
    "aria-valuemax": state.height * state.width - 1,
    "aria-valuenow": view.chosen,
    "aria-valuetext": `patch ${view.chosen}, row ${state.row}, column ${state.column}`,
  });

  const value = (v) => (v === null ? "the edge" : number(v, 3));
  parts.right.show(view.right, value(view.right));
  parts.below.show(view.below, value(view.below));
  parts.kept.show(view.kept, view.kept === null ? "none" : `${whole(100 * view.kept)} %`);

  const { height, width, row, column, angle } = parts.sliders;
  height.show(state.height);
  width.show(state.width);
  set(row.input, { max: state.height - 1 });
  set(column.input, { max: state.width - 1 });
  row.show(state.row);
  column.show(state.column);
  angle.show(state.angle, `${state.angle}°`);
  parts.method.input.value = state.method;
  parts.swap.input.checked = state.swapped;
  parts.relation.textContent = relationText(state, view);
}

// ---------------------------------------------------------------------------------------- mounting

function build(prefix) {
  const cells = svg("g", { class: "patches", "aria-hidden": "true" });
  const outline = svg("rect", { class: "cell marked series-1", style: "--share: 1" });
  const halo = svg("circle", { class: "halo" });
  const hit = svg("circle", { class: "hit" });
  const label = svg("text", { class: "small on-tone", "text-anchor": "middle" });
  const chosen = svg(
    "g",
    { role: "slider", tabindex: "0", "aria-label": "Chosen patch", "aria-valuemin": 0 },
    halo, outline, label, hit,
  );
  const box = [0, -4, BOX.width, BOX.height + 8];
  const picture = drawing(prefix, "A grid of patches, coloured by likeness", box, cells, chosen);
  const method = select(prefix, "method", ["Method"], METHODS);
  const sliders = {
    height: slider(prefix, "height", ["Height, in patches"], HEIGHT),
    width: slider(prefix, "width", ["Width, in patches"], WIDTH),
    row: slider(prefix, "row", ["Row of the chosen patch"], { ...HEIGHT, min: 0 }),
    column: slider(prefix, "column", ["Column of the chosen patch"], { ...WIDTH, min: 0 }),
    angle: slider(prefix, "angle", ["Direction of mixed pairs"], ANGLE),
  };
  const kept = reading("kept", "Neighbours one step apart");
  const right = fact("right", "One to the right");
  const below = fact("below", "One below");
  const swap = checkbox(prefix, "swap", ["Swap the mesh"]);
  const reset = button("reset", "Reset");
  swap.row.append(reset);
  const relation = html("p", { "data-role": "relation" });
  const change = html("p", { "data-role": "change" });
  const live = voice();
  const key = "The stronger, the more alike; a dash: below zero. The outlined patch shows its number ";
  const figure = frame("Interactive figure: one patch against all others", {
    picture: [picture, html("p", { class: "key" }, key, math("t"), ".")],
    panel: [
      method.row,
      kept.row,
      html("dl", {}, right.row, below.row),
      html("div", { class: "sliders series-1" }, sliders.height.row, sliders.width.row),
      html("div", { class: "sliders series-3" }, sliders.row.row, sliders.column.row),
      html("div", { class: "sliders series-2" }, sliders.angle.row),
      swap.row,
    ],
    words: [relation, change],
    live: live.node,
  });
  return {
    figure, picture, cells, chosen, outline, halo, hit, label, method, sliders, kept, right, below,
    swap, reset, relation, change, live,
  };
}

const HINT = "Click a patch, or move it with the arrow keys; then change the method or the grid.";

// Where the keys move the chosen patch: arrows as they point, Home and End along the row.
const KEYS = {
  ArrowRight: ({ column }) => ({ column: column + 1 }),
  ArrowLeft: ({ column }) => ({ column: column - 1 }),
  ArrowDown: ({ row }) => ({ row: row + 1 }),
  ArrowUp: ({ row }) => ({ row: row - 1 }),
  Home: () => ({ column: 0 }),
  End: ({ width }) => ({ column: width - 1 }),
  PageUp: () => ({ row: 0 }),
  PageDown: ({ height }) => ({ row: height - 1 }),
};

/** Puts the figure into `root`. `options.state` replaces parts of the initial state. */
export function mount(root, options = {}) {
  const initial = fit({ ...INITIAL, ...options.state });
  const parts = build(newPrefix("two_d"));
  let state = initial;

  function show(next, words) {
    state = next;
    draw(parts, state, compute(state));
    parts.change.textContent = words;
  }

  function speak() {
    parts.live.say(() => {
      const [right, below] = [parts.right, parts.below].map(({ output }) => output.textContent);
      const words = [parts.relation.textContent, parts.change.textContent].join(" ");
      return `One to the right ${right}, one below ${below}. ${words}`;
    });
  }

  function move(changes) {
    const next = fit({ ...state, ...changes });
    show(next, changeText(state, next));
    speak();
  }

  function pointTo(event) {
    const { size, x, y } = layout(state);
    const [left, top] = pointAt(parts.picture, event);
    move({ row: Math.floor((top - y) / size), column: Math.floor((left - x) / size) });
  }

  parts.cells.addEventListener("click", (event) => {
    pointTo(event);
    parts.chosen.focus({ preventScroll: true });
  });
  draggable(parts.chosen, { start() {}, move: pointTo });
  parts.chosen.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation(); // the page may turn to the next chapter on an arrow key
    move(KEYS[event.key](state));
  });

  for (const [key, { input }] of Object.entries(parts.sliders)) {
    input.addEventListener("input", () => move({ [key]: Number(input.value) }));
  }
  parts.method.input.addEventListener("change", () => move({ method: parts.method.input.value }));
  parts.swap.input.addEventListener("change", () => move({ swapped: parts.swap.input.checked }));
  parts.reset.addEventListener("click", () => {
    show(initial, HINT);
    speak();
  });

  show(state, HINT);
  root.replaceChildren(parts.figure);
}
