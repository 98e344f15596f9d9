// One query of one head among 24 keys: the bias of each key, and the shares that come out.
//
//   controls -> state -> compute(state) -> draw(view)
//
// The bias has two forms, by distance and key-only. Under a causal mask they run in parallel, and
// their weights are the same; the figure draws both forms. `compute` is pure, so a test can hold it to NumPy's values.

import {
  button, checkbox, clamp, drawing, fact, frame, html, math, newPrefix, number, set, slider, svg,
  voice,
} from "./_kit.js";

export const KEYS = 24;
// Scores of 24 made-up words, used when words differ.
export const CONTENT = Object.freeze([
  0.4, -0.9, 1.3, 0.1, -0.3, 0.8, -1.2, 0.5, 1.6, -0.4, 0.2, -0.7, 0.6, 1.1, -0.1, -1.0, 0.3, 0.9,
  -0.6, 1.4, 0.0, -0.8, 0.7, -0.2,
]);

const HEADS = { min: 1, max: 16, step: 1 };
const POSITION = { min: 0, max: KEYS - 1, step: 1 };
const SAME = 1e-9; // far above rounding, far below what the eye can see

export const INITIAL = Object.freeze({
  heads: 8,
  head: 2, // counted from 1, as in the formula
  position: 16, // of the query
  causal: true,
  keyOnly: false,
  content: false, // do the words have scores of their own?
});

// ---------------------------------------------------------------------------------------- compute

/** ALiBi's slopes; past the largest power of two they are every other one of the next power's. */
export function slopes(heads) {
  let power = 1;
  while (2 * power <= heads) power *= 2;
  const of = (count) => Array.from({ length: count }, (_, i) => 2 ** ((-8 * (i + 1)) / count));
  const between = of(2 * power).filter((_, i) => i % 2 === 0);
  return [...of(power), ...between.slice(0, heads - power)];
}

function softmax(scores) {
  const seen = scores.filter((score) => score !== null);
  const most = Math.max(...seen);
  const powers = scores.map((score) => (score === null ? 0 : Math.exp(score - most)));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** Biases (null where masked) and weights, of the chosen form and of the other one. */
export function compute(state) {
  const { heads, head, position, causal, keyOnly, content } = state;
  const slope = slopes(heads)[head - 1];
  const keys = Array.from({ length: KEYS }, (_, key) => key);
  const hidden = (key) => causal && key > position;
  const byDistance = keys.map((key) => (hidden(key) ? null : 0 - slope * Math.abs(position - key)));
  const byKey = keys.map((key) => (hidden(key) ? null : slope * key));
  const weigh = (biases) =>
    softmax(biases.map((bias, key) => (bias === null ? null : bias + (content ? CONTENT[key] : 0))));
  const [bias, otherBias] = keyOnly ? [byKey, byDistance] : [byDistance, byKey];
  const [weights, otherWeights] = [weigh(bias), weigh(otherBias)];
  return {
    slope,
    halving: Math.LN2 / slope,
    bias,
    otherBias,
    weights,
    otherWeights,
    difference: Math.max(...keys.map((key) => Math.abs(weights[key] - otherWeights[key]))),
    meanDistance: keys.reduce((sum, key) => sum + weights[key] * Math.abs(position - key), 0),
    visible: causal ? position + 1 : KEYS,
  };
}

// ------------------------------------------------------------------------------------------ words

/** One or two sentences on how the two forms stand to each other. */
export function relationText(state, view) {
  if (view.visible === 1) return "Only one key is visible. Its share is 1, whatever the bias.";
  if (view.difference < SAME) {
    const why = state.causal
      ? "No key lies after the query"
      : "No key lies after the last one, so the mask does not matter here";
    return (
      `${why}: by distance and key-only, the biases run in parallel, ` +
      `${number(view.slope * state.position)} apart, and the shares are the same.`
    );
  }
  return (
    "Keys after the query: key-only rewards them the more, the farther they are. " +
    `A share differs by up to ${number(view.difference)} between the two forms.`
  );
}

function changeText(key, before, after) {
  const what = {
    heads: `Now ${after.heads} ${after.heads === 1 ? "head" : "heads"}.`,
    head: `Now head ${after.head}.`,
    position: `The query now stands at ${after.position}.`,
    causal: after.causal ? "Keys after the query are masked." : "The query sees both sides.",
    keyOnly: after.keyOnly ? "Slope times key position." : "Minus slope times distance.",
    content: after.content ? "The words have scores of their own." : "All words score alike.",
  }[key];
  const [a, b] = [before, after].map((state) => number(compute(state).meanDistance));
  const moved = a === b ? `is ${b}, as before` : `went from ${a} to ${b}`;
  return `${what} The mean distance of attention ${moved}.`;
}

// ---------------------------------------------------------------------------------------- drawing

const [WIDE, LEFT, STEP] = [400, 44, 14.6];
const UPPER = { top: 30, height: 96 };
const LOWER = { top: 172, height: 110 };
const across = (key) => LEFT + 8 + key * STEP;

function build(prefix) {
  const marker = svg("path", { class: "unit" });
  const markerName = svg("text", { class: "small", y: 14, "text-anchor": "middle" }, "query");
  const axes = [UPPER, LOWER].map(({ top, height }) =>
    svg("path", { class: "axis", d: `M ${LEFT} ${top} V ${top + height} H ${WIDE - 8}` }),
  );
  const name = (x, y, words) => svg("text", { class: "small", x, y }, words);
  const [high, low, most] = [UPPER.top + 4, UPPER.top + UPPER.height, LOWER.top + 4].map((y) =>
    svg("text", { class: "small", x: LEFT - 5, y, "text-anchor": "end" }),
  );
  const biasLine = svg("path", { class: "line series-2" });
  const zero = svg("path", { class: "grid" });
  const [biasGhost, ghost] = [0, 1].map(() => svg("path", { class: "ghost series-3" }));
  const dots = [];
  const bars = [];
  const masked = [];
  for (let key = 0; key < KEYS; key += 1) {
    dots.push(svg("circle", { class: "mark series-2", cx: across(key), r: 3 }));
    bars.push(svg("rect", { class: "mark series-1", x: across(key) - 4.5, width: 9 }));
    const y = LOWER.top + LOWER.height;
    const d = `M ${across(key) - 3} ${y - 9} l 6 6 m 0 -6 l -6 6`;
    masked.push(svg("path", { class: "tick long", d }));
  }
  const ticks = [0, 6, 12, 18, 23].map((key) =>
    svg("text", { class: "small", x: across(key), y: 298, "text-anchor": "middle" }, String(key)),
  );
  const picture = drawing(
    prefix,
    "Above the bias of each key, below its share for one query",
    [0, 0, WIDE, 304],
    ...axes, marker, markerName, high, low, most,
    name(LEFT + 6, UPPER.top - 16, "bias"),
    name(LEFT + 6, LOWER.top - 10, "share"),
    ...ticks, zero, biasGhost, biasLine, ...dots, ...bars, ...masked, ghost,
  );
  return {
    picture, marker, markerName, high, low, most, zero, biasLine, biasGhost, ghost, dots, bars,
    masked,
  };
}

const pathOf = (points) => (points.length ? "M" + points.map((p) => p.join(" ")).join("L") : "");

/** Brings the page's nodes into line with one state and its view. */
export function draw(parts, state, view) {
  const seen = [...view.bias, ...view.otherBias].filter((bias) => bias !== null);
  const [highest, lowest] = [Math.max(...seen), Math.min(...seen)];
  const span = highest - lowest || 1; // a query at 0 that sees itself has no range
  const biasAt = (bias) => (UPPER.top + ((highest - bias) / span) * UPPER.height).toFixed(2);
  const top = Math.max(...view.weights, ...view.otherWeights);
  const weightAt = (weight) => (LOWER.top + (1 - weight / top) * LOWER.height).toFixed(2);

  const lines = { bias: [], otherBias: [], otherWeights: [] };
  view.bias.forEach((bias, key) => {
    const shown = bias !== null;
    parts.dots[key].style.display = shown ? "" : "none";
    parts.bars[key].style.display = shown ? "" : "none";
    parts.masked[key].style.display = shown ? "none" : "";
    if (!shown) return;
    lines.bias.push([across(key), biasAt(bias)]);
    lines.otherBias.push([across(key), biasAt(view.otherBias[key])]);
    lines.otherWeights.push([across(key), weightAt(view.otherWeights[key])]);
    set(parts.dots[key], { cy: biasAt(bias) });
    const y = weightAt(view.weights[key]);
    const height = (LOWER.top + LOWER.height - y).toFixed(2);
    set(parts.bars[key], { y, height, "data-key": key });
  });
  set(parts.biasLine, { d: pathOf(lines.bias) });
  set(parts.biasGhost, { d: pathOf(lines.otherBias) });
  set(parts.ghost, { d: pathOf(lines.otherWeights) });
  set(parts.zero, { d: `M ${LEFT} ${biasAt(0)} H ${WIDE - 8}` });
  const x = across(state.position);
  set(parts.marker, { d: `M ${x} 18 V ${LOWER.top + LOWER.height}` });
  set(parts.markerName, { x });
  parts.high.textContent = number(highest, span < 1 ? 2 : 1);
  parts.low.textContent = highest === lowest ? "" : number(lowest, span < 1 ? 2 : 1);
  parts.most.textContent = number(top);

  const { heads, head, position } = parts.sliders;
  heads.show(state.heads);
  set(head.input, { max: state.heads });
  head.show(state.head);
  position.show(state.position);
  for (const key of ["causal", "keyOnly", "content"]) parts.boxes[key].input.checked = state[key];
  parts.facts.slope.show(view.slope, number(view.slope, 4));
  parts.facts.halving.show(view.halving, `${number(view.halving, 1)} words`);
  parts.facts.difference.show(view.difference, number(view.difference, 4));
  parts.relation.textContent = relationText(state, view);
}

// --------------------------------------------------------------------------------------- mounting

const HINT = "Tick key-only: the biases jump, the bars stay. Then take the mask away.";

/** Puts the figure into `root`. `options.state` replaces parts of the initial state. */
export function mount(root, options = {}) {
  const initial = { ...INITIAL, ...options.state };
  const prefix = newPrefix("alibi");
  const sliders = {
    heads: slider(prefix, "heads", ["Heads of the model"], HEADS),
    head: slider(prefix, "head", ["Head ", math("h")], { ...HEADS, max: initial.heads }),
    position: slider(prefix, "position", ["Position of the query"], POSITION),
  };
  const boxes = {
    keyOnly: checkbox(prefix, "keyOnly", ["Key-only bias"]),
    causal: checkbox(prefix, "causal", ["Causal mask"]),
    content: checkbox(prefix, "content", ["Words score differently"]),
  };
  const reset = button("reset", "Reset");
  boxes.content.row.append(reset);
  const facts = {
    slope: fact("slope", "Slope"),
    halving: fact("halving", "Share halved every"),
    difference: fact("difference", "The two forms' shares differ by"),
  };
  const [relation, change] = ["relation", "change"].map((role) => html("p", { "data-role": role }));
  const live = voice();
  const parts = { ...build(prefix), sliders, boxes, facts, relation };
  let state = initial;

  function show(next, words) {
    state = next;
    draw(parts, state, compute(state));
    change.textContent = words;
  }

  function move(key, value) {
    const next = { ...state, [key]: value };
    next.head = clamp(next.head, { min: 1, max: next.heads });
    show(next, changeText(key, state, next));
    live.say(() => `${change.textContent} ${relation.textContent}`);
  }

  for (const [key, { input }] of Object.entries(sliders)) {
    input.addEventListener("input", () => move(key, Math.round(Number(input.value))));
  }
  for (const [key, { input }] of Object.entries(boxes)) {
    input.addEventListener("change", () => move(key, input.checked));
  }
  reset.addEventListener("click", () => {
    show(initial, HINT);
    live.say(() => relation.textContent);
  });

  show(state, HINT);
  const key = "Dashed: the other form's bias and shares. Crosses: masked keys.";
  root.replaceChildren(
    frame("Interactive figure: one head's bias and its shares", {
      picture: [parts.picture, html("p", { class: "key" }, key)],
      panel: [
        html("dl", {}, ...Object.values(facts).map(({ row }) => row)),
        ...Object.values(boxes).map(({ row }) => row),
        html("div", { class: "sliders series-1" }, ...Object.values(sliders).map(({ row }) => row)),
      ],
      words: [relation, change],
      live: live.node,
    }),
  );
}
