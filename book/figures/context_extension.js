// What each method of stretching RoPE does to each pair: the ratio of new to old frequency above,
// and below the turns a pair made in training beside those it makes over the stretched text.
//
//   controls -> state -> compute(state) -> draw(parts, state, view)
//
// Everything up to the sentences is pure, so a test can hold it to the chapter's reference.

import {
  button, clamp, drawing, fact, frame, html, newPrefix, number, reading, select, set, slider, svg,
  voice, whole,
} from "./_kit.js";

export const METHODS = [
  ["none", "None"],
  ["linear", "Linear (interpolation)"],
  ["ntk", "NTK-aware base"],
  ["yarn", "YaRN"],
  ["llama3", "Llama 3"],
];
const LENGTHS = ["2048", "4096", "8192"];
const WIDTHS = ["64", "128"];
const BASES = ["10000", "500000"];
const FACTOR = { min: 1, max: 32, step: 1 };

export const INITIAL = Object.freeze({
  method: "yarn", factor: 8, trained: 4096, dim: 128, base: 10000, pair: 46,
});

// ---------------------------------------------------------------------------------------- compute

const TURN = 2 * Math.PI;
const ROUNDING = 1e-9; // relative; far above the error of a power, far below what a dot shows

/** Radians per token of each pair, the fastest first. */
export function ladder(dim, base) {
  return Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));
}

/** The pair index, mostly a fraction, at which a pair makes so many turns in training. */
function indexOf(count, { dim, base, trained }) {
  return (dim * Math.log(trained / (TURN * count))) / (2 * Math.log(base));
}

/** How much of the division by the factor a pair gets, 0 to 1, in the methods that fade. */
function divided(state, theta, i) {
  const unit = { min: 0, max: 1 };
  if (state.method === "llama3") {
    return 1 - clamp(((state.trained * theta) / TURN - 1) / (4 - 1), unit);
  }
  const low = Math.max(Math.floor(indexOf(32, state)), 0);
  const high = Math.min(Math.ceil(indexOf(1, state)), state.dim - 1);
  return clamp((i - low) / Math.max(high - low, 0.001), unit);
}

/** The frequencies of the stretched model. */
export function stretch(state) {
  const { method, factor, dim, base } = state;
  if (method === "ntk") return ladder(dim, base * factor ** (dim / (dim - 2)));
  return ladder(dim, base).map((theta, i) => {
    if (method === "none") return theta;
    if (method === "linear") return theta / factor;
    const share = divided(state, theta, i);
    return (1 - share) * theta + (share * theta) / factor;
  });
}

/** Has the pair met every angle; does it stay where it has been; or does it meet new angles? */
function fateOf(before, after) {
  if (before >= 1) return "whole";
  return after <= before * (1 + ROUNDING) ? "stays" : "new";
}

/** Everything the picture shows. */
export function compute(state) {
  const { factor, trained, dim, base } = state;
  const frequencies = stretch(state);
  const pairs = ladder(dim, base).map((theta, i) => {
    const before = (trained * theta) / TURN;
    const after = (factor * trained * frequencies[i]) / TURN;
    return { ratio: frequencies[i] / theta, before, after, fate: fateOf(before, after) };
  });
  const count = (test) => pairs.filter(test).length;
  return {
    pairs,
    marked: { index: Math.min(state.pair, pairs.length - 1) },
    fresh: count(({ fate }) => fate === "new"),
    slow: count(({ before }) => before < 1),
    kept: count(({ ratio }) => Math.abs(ratio - 1) < ROUNDING),
    sharper: state.method === "yarn" ? (0.1 * Math.log(factor) + 1) ** 2 : 1,
    target: factor * trained,
  };
}

// ------------------------------------------------------------------------------------------ words

/** A number of turns with as many digits as it deserves. */
export function amount(turns) {
  if (turns >= 100) return whole(turns);
  if (turns >= 10) return number(turns, 1);
  return number(turns, turns >= 0.095 ? 2 : turns >= 0.0095 ? 3 : 4);
}

const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/** What is so at the marked pair. */
export function relationText(state, view) {
  const i = view.marked.index;
  const { ratio, before, after, fate } = view.pairs[i];
  if (state.factor === 1) {
    return "Factor 1: nothing is stretched, and all methods leave the ladder as it is.";
  }
  if (fate === "whole") {
    return (
      `Pair ${i} made ${amount(before)} turns in training and knows every angle. ` +
      (ratio > 1 - ROUNDING ? "It is kept." : `It is slowed to ${number(ratio, 3)} all the same.`)
    );
  }
  const slice = `Pair ${i} knows a slice of ${amount(before)} turns`;
  if (fate === "stays") return `${slice} and stays in it, slowed to ${number(ratio, 3)}.`;
  return `${slice} and now goes to ${amount(after)}: it meets angles it never saw.`;
}

/** What the reader's last movement did. */
export function changeText(old, now, key) {
  const [before, after] = [compute(old), compute(now)];
  if (key === "pair") return `The mark is on pair ${after.marked.index}.`;
  const met = `${counted(after.fresh, "pair meets", "pairs meet")} new angles`;
  const was = after.fresh === before.fresh ? "as before" : `${before.fresh} before`;
  const fastest = after.pairs[0].ratio;
  const near = fastest > 1 - ROUNDING ? "keeps its speed" : `is slowed to ${number(fastest, 3)}`;
  return `${met} (${was}). The fastest pair ${near}.`;
}

// ---------------------------------------------------------------------------------------- drawing

const WIDTH = 344;
const HEIGHT = 372;
const [LEFT, RIGHT] = [46, 338];
const RATIO = { top: 30, bottom: 130, min: -5, max: 0 }; // powers of 2
const TURNS = { top: 172, bottom: 342, min: -3.3, max: 4.8 }; // powers of 10

const level = (value, { top, bottom, min, max }) =>
  bottom - ((value - min) / (max - min)) * (bottom - top);
const ratioLevel = (ratio) => level(Math.log2(ratio), RATIO);
const turnLevel = (turns) => level(Math.log10(turns), TURNS);
const column = (i, count) => LEFT + (i / (count - 1)) * (RIGHT - LEFT);

function scaleLine(y, name, kind = "grid") {
  return [
    svg("path", { class: kind, d: `M ${LEFT} ${y.toFixed(1)} H ${RIGHT}` }),
    svg("text", { class: "small", x: LEFT - 6, y: (y + 4).toFixed(1), "text-anchor": "end" }, name),
  ];
}

function scaleParts() {
  const title = (text, y) => svg("text", { class: "small", x: LEFT - 6, y }, text);
  return svg(
    "g",
    { "aria-hidden": "true" },
    title("new frequency / old", 18),
    ...[[0, "1"], [-1, "1/2"], [-2, "1/4"], [-3, "1/8"], [-4, "1/16"], [-5, "1/32"]].flatMap(
      ([power, name]) => scaleLine(level(power, RATIO), name),
    ),
    title("turns: in training, and over the stretched text", 160),
    ...[[4, "10 000"], [2, "100"], [-2, "0.01"]].flatMap(([power, name]) =>
      scaleLine(level(power, TURNS), name)),
    ...scaleLine(level(0, TURNS), "once", "tick long"),
    svg("text", { class: "small", x: (LEFT + RIGHT) / 2, y: 366, "text-anchor": "middle" },
      "pair, the fastest first"),
  );
}

function pairParts() {
  const parts = {
    gap: svg("path", { class: "line series-2" }),
    ratio: svg("circle", { class: "mark series-1", r: 2.2 }),
    after: svg("circle", { class: "mark series-2", r: 2 }),
    before: svg("circle", { class: "line series-1", r: 3 }),
  };
  return { group: svg("g", {}, ...Object.values(parts)), ...parts };
}

/** As many columns as there are pairs. */
function layOut(parts, count) {
  parts.pairs = Array.from({ length: count }, pairParts);
  parts.scene.replaceChildren(...parts.pairs.map(({ group }) => group));
  parts.pair.input.max = String(count - 1);
}

function drawPair({ gap, ratio, before, after }, pair, x) {
  set(ratio, { cx: x, cy: ratioLevel(pair.ratio).toFixed(1) });
  const [from, to] = [pair.before, pair.after].map((turns) => turnLevel(turns).toFixed(1));
  set(before, { cx: x, cy: from });
  set(after, { cx: x, cy: to });
  set(gap, { d: `M ${x} ${from} V ${to}` });
  gap.style.display = pair.fate === "new" ? "" : "none";
}

/** Brings the page's nodes into line with one state and its view. */
export function draw(parts, state, view) {
  const count = view.pairs.length;
  if (parts.pairs.length !== count) layOut(parts, count);
  view.pairs.forEach((pair, i) => drawPair(parts.pairs[i], pair, column(i, count).toFixed(1)));
  const i = view.marked.index;
  const marked = view.pairs[i];
  const x = column(i, count).toFixed(1);
  const bars = [RATIO, TURNS].map(({ top, bottom }) => `M ${x} ${top - 6} V ${bottom}`);
  set(parts.mark, { d: bars.join(" ") });
  set(parts.picture, {
    "aria-label":
      `${view.fresh} of ${count} pairs meet new angles. Pair ${i}: ratio ` +
      `${number(marked.ratio, 3)}, ${amount(marked.before)} turns in training, ` +
      `${amount(marked.after)} over ${view.target} tokens.`,
  });
  parts.method.input.value = state.method;
  parts.trained.input.value = String(state.trained);
  parts.width.input.value = String(state.dim);
  parts.base.input.value = String(state.base);
  parts.factor.show(state.factor, `${state.factor}: ${state.trained} to ${view.target}`);
  parts.pair.show(i);
  parts.fresh.show(view.fresh, `${view.fresh} of ${count}`);
  parts.ratio.show(marked.ratio, number(marked.ratio, 3));
  parts.before.show(marked.before, amount(marked.before));
  parts.after.show(marked.after, amount(marked.after));
  parts.kept.show(view.kept, `${view.kept} of ${count}`);
  parts.sharper.show(view.sharper, number(view.sharper));
  parts.relation.textContent = relationText(state, view);
}

// ---------------------------------------------------------------------------------------- mounting

const HINT = "Choose a method. Then move the factor, and the mark across the line of one turn.";

function build(prefix) {
  const scene = svg("g");
  const mark = svg("path", { class: "line series-3", "stroke-dasharray": "3 3" });
  const picture = svg("g", { role: "img" }, mark, scene);
  const chart = drawing(
    prefix,
    "Ratio of frequencies and numbers of turns, pair by pair",
    [0, 0, WIDTH, HEIGHT],
    scaleParts(),
    picture,
  );
  const plain = (values) => values.map((value) => [value, value]);
  const parts = {
    scene,
    mark,
    picture,
    pairs: [],
    method: select(prefix, "method", ["Method"], METHODS),
    factor: slider(prefix, "factor", ["Factor"], FACTOR),
    pair: slider(prefix, "pair", ["Marked pair"], { min: 0, max: 63, step: 1 }),
    trained: select(prefix, "trained", ["Trained length"], plain(LENGTHS)),
    width: select(prefix, "width", ["Head width"], plain(WIDTHS)),
    base: select(prefix, "base", ["Base"], plain(BASES)),
    fresh: reading("fresh", "Pairs that meet new angles"),
    ratio: fact("ratio", "Ratio"),
    before: fact("before", "Turns in training"),
    after: fact("after", "Turns now"),
    kept: fact("kept", "Pairs kept"),
    sharper: fact("sharper", "Scores times"),
    reset: button("reset", "Reset"),
    relation: html("p", { "data-role": "relation" }),
    change: html("p", { "data-role": "change" }),
    live: voice(),
  };
  const key = "Ring: training. Dot: the stretched text. A line joins them where angles are new.";
  parts.figure = frame("Interactive figure: methods that stretch a ladder", {
    picture: [chart, html("p", { class: "key" }, key)],
    panel: [
      parts.method.row,
      parts.factor.row,
      parts.fresh.row,
      html("dl", {}, parts.kept.row, parts.sharper.row),
      html("div", { class: "sliders series-3" }, parts.pair.row,
        html("dl", {}, parts.ratio.row, parts.before.row, parts.after.row)),
      parts.trained.row,
      parts.width.row,
      parts.base.row,
      html("div", { class: "buttons" }, parts.reset),
    ],
    words: [parts.relation, parts.change],
    live: parts.live.node,
  });
  return parts;
}

/** Puts the figure into `root`. `options.state` replaces parts of the initial state. */
export function mount(root, options = {}) {
  const initial = { ...INITIAL, ...options.state };
  const parts = build(newPrefix("context_extension"));
  let state = initial;
  let before = initial; // what the sentence on the last movement compares
  let moving = null;

  function show(next, words) {
    state = next;
    draw(parts, state, compute(state));
    parts.change.textContent = words;
  }
  function move(next, words) { // by the reader: only then is anything read out
    show(next, words);
    parts.live.say(() => `${parts.relation.textContent} ${parts.change.textContent}`);
  }
  function begin(key, fresh) { // a drag is one movement, however many steps it takes
    if (fresh || moving !== key) [before, moving] = [state, key];
  }

  for (const key of ["factor", "pair"]) {
    const { input } = parts[key];
    for (const start of ["pointerdown", "keydown"]) {
      input.addEventListener(start, () => begin(key, true));
    }
    input.addEventListener("input", () => {
      begin(key, false);
      const next = { ...state, [key]: Number(input.value) };
      move(next, changeText(before, next, key));
    });
  }
  const numbers = { trained: "trained", width: "dim", base: "base" };
  for (const name of ["method", "trained", "width", "base"]) {
    const { input } = parts[name];
    input.addEventListener("change", () => {
      const key = numbers[name] ?? name;
      begin(key, true);
      const next = { ...state, [key]: name in numbers ? Number(input.value) : input.value };
      next.pair = Math.min(next.pair, next.dim / 2 - 1);
      move(next, changeText(before, next, key));
    });
  }
  parts.reset.addEventListener("click", () => {
    begin(null, true);
    show(initial, HINT);
    parts.live.say(() => parts.relation.textContent);
  });

  show(state, HINT);
  root.replaceChildren(parts.figure);
}
